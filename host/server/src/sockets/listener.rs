//! A socket that listens in a runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::peer::Peer;
use super::unix::SocketFile;

/// A socket that listens in a runtime.
#[derive(Debug)]
pub(crate) struct PortListener {
    /// Dropped before its socket: until then no other file has its inode.
    _file: Option<SocketFile>,
    listener: Listener,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

// === impl PortListener ===

impl PortListener {
    pub(super) fn of_tcp(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            _file: None,
            listener: Listener::Tcp(listener.try_into()?),
        })
    }

    pub(super) fn of_unix(
        file: SocketFile,
        listener: std::os::unix::net::UnixListener,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            _file: Some(file),
            listener: Listener::Unix(listener.try_into()?),
        })
    }

    /// The next connection. Cancel safe.
    pub(crate) async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((stream, Peer::Tcp(address)))
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                // An error: the client has gone by now.
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Ok((as_tcp(stream)?, Peer::User(user)))
            }
        }
    }
}

/// The same socket in the type of TCP streams, whose calls suit every stream socket: the type of Unix sockets
/// has no `peek`, and one type needs no branch at each read and write.
fn as_tcp(stream: UnixStream) -> io::Result<TcpStream> {
    let socket = OwnedFd::from(stream.into_std()?);
    TcpStream::from_std(std::net::TcpStream::from(socket))
}
