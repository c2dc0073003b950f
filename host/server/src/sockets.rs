//! The sockets of the ports: TCP, or a Unix socket at a path.
//!
//! - `address`: the address of a port, as the configuration has it
//! - `bound`: a socket that listens; `unix`: the file of a Unix socket; `error`: addresses that cannot be
//!   listened on
//! - `mode`: the programs that may connect to a Unix socket
//! - `listener`: the same in a runtime, and its connections; `peer`: the client of a connection

mod address;
mod bound;
mod error;
mod listener;
mod mode;
mod peer;
mod unix;

pub use address::{ListenAddress, WrongAddress};
pub use bound::BoundPort;
pub use error::BindError;
pub(crate) use listener::PortListener;
pub use mode::{SocketMode, WrongMode};
pub(crate) use peer::Peer;
