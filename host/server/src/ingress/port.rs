//! The ports for clients.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::sockets::{BoundPort, Peer, PortListener};
use crate::tls::Tls;

/// Wait after a failed accept: if the process is out of descriptors, trying again at once spins.
pub(super) const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The listeners of a server. They share all limits.
#[derive(Debug)]
pub struct Ports {
    /// The protocol over HTTP/1.1 and HTTP/2.
    pub http: BoundPort,
    /// The protocol over gRPC; `None`: no such port.
    pub grpc: Option<BoundPort>,
    /// TLS of both; `None`: plain.
    pub tls: Option<Tls>,
}

/// The port of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    Http,
    Grpc,
}

/// The next connection of a listener, or never one. Cancel safe.
pub(super) async fn accept(listener: Option<&PortListener>) -> (TcpStream, Peer) {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => retry(&error).await,
        }
    }
}

/// Logs a failed accept, and waits.
pub(super) async fn retry(error: &io::Error) {
    tracing::warn!(%error, "accept failed");
    sleep(ACCEPT_RETRY).await;
}
