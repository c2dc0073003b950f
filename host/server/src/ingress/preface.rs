//! The version of HTTP that a connection begins with.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

/// The first bytes of HTTP/2; no method of HTTP/1 begins with the first three.
const PREFACE: &[u8] = b"PRI";

/// Wait for further bytes of a preface that has begun.
const PIECE_WAIT: Duration = Duration::from_millis(1);

/// Whether a connection begins HTTP/2. Takes no byte. `None`: the client has gone.
pub(super) async fn begins_http2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
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
        // The bytes that are there would end the next wait at once.
        sleep(PIECE_WAIT).await;
    }
}
