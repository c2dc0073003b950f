//! The server that runs with a configuration, if one does.

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
    /// No server answers.
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
            Err(_) => return Taken::NoServer,
            Ok(answer) if is_wanted(&answer) => return Taken::Yes(began.elapsed()),
            Ok(_) => std::thread::sleep(ASK_EVERY),
        }
    }
    Taken::No(address.clone())
}

/// The reason for the operator.
pub(super) fn not_taken(address: &ListenAddress) -> String {
    format!(
        "the server at {address} has not taken the change in after {} s: its log says why, unless \
         it runs with another configuration",
        PATIENCE.as_secs()
    )
}
