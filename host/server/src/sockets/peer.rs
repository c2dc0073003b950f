//! The client of a connection.

use std::fmt;
use std::net::SocketAddr;

/// The client of a connection, as far as the system names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// By its address.
    Tcp(SocketAddr),
    /// Over a Unix socket, by the number of the user whose program has connected.
    User(Option<u32>),
}

// === impl Peer ===

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::User(Some(user)) => write!(f, "uid {user}"),
            Self::User(None) => f.write_str("uid unknown"),
        }
    }
}
