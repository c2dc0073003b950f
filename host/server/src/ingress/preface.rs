//! The version of HTTP that a connection begins with.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// The first bytes of HTTP/2; no method of HTTP/1 begins with the first three.
const PREFACE: &[u8] = b"PRI";

/// First wait for further bytes of a preface that has begun; it doubles.
const PIECE_WAIT: Duration = Duration::from_millis(1);

/// Longest such wait.
const PIECE_WAIT_MAX: Duration = Duration::from_millis(64);

/// Whether a connection begins HTTP/2. Takes no byte. `None`: the client has gone, or has stopped for this
/// long within a preface.
pub(super) async fn begins_http2(stream: &TcpStream, patience: Duration) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
    let mut wait = PIECE_WAIT;
    let mut began = None;
    loop {
        let seen = stream.peek(&mut first).await.ok()?;
        if seen == 0 {
            return None;
        }
        if first[..seen] != PREFACE[..seen] {
            return Some(false);
        }
        if seen == PREFACE.len() {
            return Some(true);
        }
        if began.get_or_insert_with(Instant::now).elapsed() > patience {
            return None;
        }
        // The bytes that are there would end the next wait at once.
        sleep(wait).await;
        wait = (2 * wait).min(PIECE_WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_preface_that_stops_is_waited_for_as_a_head_is() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let patience = Duration::from_millis(30);
        for (sent, begins) in [
            ("P", None),
            ("PR", None),
            ("PRI", Some(true)),
            ("PO", Some(false)),
        ] {
            let mut client = TcpStream::connect(address).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            client.write_all(sent.as_bytes()).await.unwrap();
            assert_eq!(begins_http2(&server, patience).await, begins, "{sent}");
        }
    }
}
