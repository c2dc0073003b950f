//! The sockets of a server.

use std::io;

use super::error::StartError;
use crate::config::ServerConfig;
use crate::ingress::Ports;
use crate::sockets::{BoundPort, ListenAddress, SocketMode};
use crate::tls::Tls;

/// Protocols of the ports for clients.
pub(super) const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The sockets of a server.
pub struct Listeners {
    pub(super) ports: Ports,
    pub(super) admin: BoundPort,
    pub(super) admin_tls: Option<Tls>,
}

// === impl Listeners ===

impl Listeners {
    /// Opens the sockets. A client that connects before the server has started waits.
    ///
    /// # Errors
    /// An address cannot be listened on, or a certificate not be used; names the field.
    pub fn bind(server: &ServerConfig) -> Result<Self, StartError> {
        let bind = |field, address| bind(field, address, server.socket_mode);
        Ok(Self {
            ports: Ports {
                http: bind("http", &server.http)?,
                grpc: match &server.grpc {
                    Some(address) => Some(bind("grpc", address)?),
                    None => None,
                },
                tls: match &server.tls {
                    Some(files) => Some(Tls::open("server.tls", files, ALPN)?),
                    None => None,
                },
            },
            admin: bind("admin", &server.admin)?,
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
    pub fn http_addr(&self) -> io::Result<ListenAddress> {
        self.ports.http.address()
    }

    /// The address of the protocol over gRPC; `None` without such a port.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn grpc_addr(&self) -> io::Result<Option<ListenAddress>> {
        let grpc = self.ports.grpc.as_ref();
        grpc.map(BoundPort::address).transpose()
    }

    /// The address of metrics and status.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn admin_addr(&self) -> io::Result<ListenAddress> {
        self.admin.address()
    }
}

pub(super) fn bind(
    field: &'static str,
    address: &ListenAddress,
    mode: SocketMode,
) -> Result<BoundPort, StartError> {
    BoundPort::bind(address, mode).map_err(|error| StartError::Listen {
        field,
        address: address.clone(),
        error,
    })
}
