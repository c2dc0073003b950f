//! The sockets of a server.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use super::error::StartError;
use crate::config::ServerConfig;
use crate::ingress::Ports;
use crate::tls::Tls;

/// Connections that the kernel keeps until they are accepted; it resets further ones.
const BACKLOG: u32 = 4_096;

/// Protocols of the ports for clients.
pub(super) const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The sockets of a server.
pub struct Listeners {
    pub(super) ports: Ports,
    pub(super) admin: TcpListener,
    pub(super) admin_tls: Option<Tls>,
}

// === impl Listeners ===

impl Listeners {
    /// Opens the sockets. A client that connects before the server has started waits.
    ///
    /// # Errors
    /// An address cannot be listened on, or a certificate not be used; names the field.
    pub async fn bind(server: &ServerConfig) -> Result<Self, StartError> {
        Ok(Self {
            ports: Ports {
                http: bind("http", server.http).await?,
                grpc: match server.grpc {
                    Some(address) => Some(bind("grpc", address).await?),
                    None => None,
                },
                tls: match &server.tls {
                    Some(files) => Some(Tls::open("server.tls", files, ALPN)?),
                    None => None,
                },
            },
            admin: bind("admin", server.admin).await?,
            admin_tls: match &server.admin_tls {
                Some(files) => Some(Tls::open("server.admin_tls", files, &[b"http/1.1"])?),
                None => None,
            },
        })
    }

    /// The address of the protocol over HTTP.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn http_addr(&self) -> io::Result<SocketAddr> {
        self.ports.http.local_addr()
    }

    /// The address of the protocol over gRPC; `None` without such a port.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn grpc_addr(&self) -> io::Result<Option<SocketAddr>> {
        let grpc = self.ports.grpc.as_ref();
        grpc.map(TcpListener::local_addr).transpose()
    }

    /// The address of metrics and status.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn admin_addr(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }
}

pub(super) async fn bind(
    field: &'static str,
    address: SocketAddr,
) -> Result<TcpListener, StartError> {
    listen(address).map_err(|error| StartError::Listen {
        field,
        address,
        error,
    })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The steps of `TcpListener::bind`, with a longer backlog.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
