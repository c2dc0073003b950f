//! The server that runs with a configuration, if one does.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use switchyard_server::sockets::ListenAddress;

use crate::probe::{self, Answer};

/// Longest wait for a running server: it measures the latencies of a new model first.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Whether a running server has taken a change in.
pub(super) enum Taken {
    /// After this time.
    Yes(Duration),
    /// A server answers at this address, and goes on as before.
    No(ListenAddress),
    /// Whether a server listens there is not known, such as at a port with TLS; with the reason for the
    /// operator.
    Unknown(String),
    /// Nothing listens there.
    NoServer,
}

/// Waits until a GET of this path has a wanted answer.
pub(super) fn until(
    address: &ListenAddress,
    path: &str,
    is_wanted: impl Fn(&Answer) -> bool,
) -> Taken {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match probe::ask(address, &format!("GET {path}"), "", b"") {
            Ok(answer) if is_wanted(&answer) => return Taken::Yes(began.elapsed()),
            Ok(_) => std::thread::sleep(ASK_EVERY),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => return Taken::NoServer,
                // It accepts, and is slow.
                ErrorKind::WouldBlock => {}
                _ => return Taken::Unknown(unknown(address, &error)),
            },
        }
    }
    Taken::No(address.clone())
}

fn unknown(address: &ListenAddress, error: &io::Error) -> String {
    format!(
        "no answer over plain HTTP at {address} ({error}): the server's log says whether it has taken the \
         change in"
    )
}

/// The reason for the operator.
pub(super) fn not_taken(address: &ListenAddress) -> String {
    format!(
        "the server at {address} has not taken the change in after {} s: its log says why, unless \
         it runs with another configuration",
        PATIENCE.as_secs()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Asks a listener that reads a request and answers with these bytes.
    fn asked(answer: &'static [u8]) -> Taken {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ListenAddress::Tcp(listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(answer).unwrap();
        });
        let taken = until(&address, "/v2/models/app", |answer| answer.status == 200);
        server.join().unwrap();
        taken
    }

    #[test]
    fn a_port_that_speaks_tls_is_no_missing_server() {
        let answer = asked(b"HTTP/1.1 200 OK\r\n\r\n");
        assert!(matches!(answer, Taken::Yes(_)));
        // An alert of TLS: unexpected message.
        let Taken::Unknown(reason) = asked(&[0x15, 3, 3, 0, 2, 2, 10]) else {
            panic!("something listens there");
        };
        assert!(reason.contains("no answer over plain HTTP"), "{reason}");
        let gone = tempfile::tempdir().unwrap().path().join("http.sock");
        let gone = until(&ListenAddress::Unix(gone), "/", |_| true);
        assert!(matches!(gone, Taken::NoServer));
    }
}
