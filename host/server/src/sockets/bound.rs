//! A socket that listens and is of no runtime yet, so that any thread may take it over.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

use socket2::{Domain, Socket, Type};

use super::address::ListenAddress;
use super::error::BindError;
use super::listener::PortListener;
use super::mode::SocketMode;
use super::unix::{self, SocketFile};

/// Connections that the kernel keeps until they are accepted; it resets further ones.
const BACKLOG: i32 = 4_096;

/// A socket that listens.
#[derive(Debug)]
pub struct BoundPort(Bound);

#[derive(Debug)]
enum Bound {
    Tcp(TcpListener),
    /// The file goes before its socket, as in [`PortListener`].
    Unix(SocketFile, UnixListener),
}

// === impl BoundPort ===

impl BoundPort {
    /// Listens; on a Unix socket for the programs that its mode lets in. A client that connects before a
    /// server accepts waits.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn bind(address: &ListenAddress, mode: SocketMode) -> Result<Self, BindError> {
        let bound = match address {
            ListenAddress::Tcp(address) => {
                let socket = bound(*address)?;
                socket.listen(BACKLOG)?;
                Bound::Tcp(socket.into())
            }
            ListenAddress::Unix(path) => {
                let (file, listener) = unix::bind(path, mode, BACKLOG)?;
                Bound::Unix(file, listener)
            }
        };
        Ok(Self(bound))
    }

    /// Whether [`bind`](Self::bind) would succeed. Listens nowhere.
    pub(crate) fn check(address: &ListenAddress) -> Result<(), BindError> {
        match address {
            ListenAddress::Tcp(address) => Ok(bound(*address).map(drop)?),
            ListenAddress::Unix(path) => unix::check(path),
        }
    }

    /// The address, with the port that the system has chosen.
    ///
    /// # Errors
    /// The system does not tell it.
    pub fn address(&self) -> io::Result<ListenAddress> {
        match &self.0 {
            Bound::Tcp(listener) => listener.local_addr().map(ListenAddress::Tcp),
            Bound::Unix(file, _) => Ok(ListenAddress::Unix(file.path().to_path_buf())),
        }
    }

    /// Accepts connections in the present runtime from now on.
    pub(crate) fn listen(self) -> io::Result<PortListener> {
        match self.0 {
            Bound::Tcp(listener) => PortListener::of_tcp(listener),
            Bound::Unix(file, listener) => PortListener::of_unix(file, listener),
        }
    }
}

/// The steps of `std`'s bind before it listens.
fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
