//! The address of a server: `grpc://HOST:PORT`, `grpcs://` with TLS, or the path of a Unix socket.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// Before the path of a Unix socket.
const UNIX: &str = "unix:";

/// A server's host, by name or number, and its port, or its Unix socket. A name is resolved at each
/// connection, unless one of its addresses is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// With TLS.
    pub is_tls: bool,
    pub(crate) place: Place,
}

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To an address of the host.
    Host,
    /// To this address of the host, which stands for several.
    At(SocketAddr),
    /// To a socket of this machine.
    Unix(PathBuf),
}

/// An address of another form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}`, must be `grpc://HOST:PORT` or `grpcs://HOST:PORT` with a port from 1 to 65535, or `unix:PATH`, \
     such as grpc://10.0.0.2:8001"
)]
pub struct WrongAddress(String);

// === impl RemoteAddress ===

impl RemoteAddress {
    /// Of servers that tell their addresses later: only shown.
    pub fn named(name: &str) -> Self {
        Self {
            host: name.to_owned(),
            port: 0,
            is_tls: false,
            place: Place::Host,
        }
    }

    /// A server at a path of this machine.
    pub fn unix(path: &Path) -> Self {
        Self {
            // By the rules of gRPC.
            host: "localhost".to_owned(),
            port: 0,
            is_tls: false,
            place: Place::Unix(path.to_path_buf()),
        }
    }

    /// Whether the host is a name, which may stand for several addresses.
    pub fn is_name(&self) -> bool {
        self.place == Place::Host && self.host.parse::<IpAddr>().is_err()
    }

    /// One of the addresses of the host.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            place: Place::At(address),
            ..self.clone()
        }
    }

    /// The host as the server and its certificate know it.
    pub(crate) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        match (&self.place, host.contains(':')) {
            (Place::Unix(_), _) => host.clone(),
            (_, true) => format!("[{host}]:{port}"),
            (_, false) => format!("{host}:{port}"),
        }
    }
}

impl FromStr for RemoteAddress {
    type Err = WrongAddress;

    fn from_str(text: &str) -> Result<Self, WrongAddress> {
        let wrong = || WrongAddress(text.to_owned());
        if let Some(path) = text.strip_prefix(UNIX).filter(|path| !path.is_empty()) {
            return Ok(Self::unix(Path::new(path)));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let is_tls = match scheme {
            "grpc" => false,
            "grpcs" => true,
            _ => return Err(wrong()),
        };
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']').ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        let port = port.parse().ok().filter(|port| *port > 0);
        match port {
            Some(port) if !host.is_empty() && host.chars().all(is_host) => Ok(Self {
                host: host.to_owned(),
                port,
                is_tls,
                place: Place::Host,
            }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::At(address) => address.fmt(f),
            Place::Unix(path) => write!(f, "{UNIX}{}", path.display()),
            Place::Host if self.port == 0 => f.write_str(&self.host),
            Place::Host => f.write_str(&self.authority()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (text, shown) in [
            ("grpc://127.0.0.1:8001", Some("127.0.0.1:8001")),
            (
                "grpc://workers.default.svc:8001",
                Some("workers.default.svc:8001"),
            ),
            ("grpc://[::1]:8001", Some("[::1]:8001")),
            ("grpcs://10.0.0.2:8001", Some("10.0.0.2:8001")),
            ("unix:/run/far.sock", Some("unix:/run/far.sock")),
            ("unix:", None),
            ("https://10.0.0.2:8001", None),
            ("127.0.0.1:8001", None),
            ("grpc://:8001", None),
            ("grpc://host", None),
            ("grpc://host:0", None),
            ("grpc://host:65536", None),
            ("grpc://::1:8001", None),
            ("grpc://a b:1", None),
        ] {
            let address = text.parse::<RemoteAddress>();
            let shows = address.map(|address| address.to_string()).ok();
            assert_eq!(shows.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn one_of_the_addresses_of_a_name_is_shown() {
        let name: RemoteAddress = "grpcs://workers:8001".parse().unwrap();
        let one = name.at(SocketAddr::from(([10, 0, 0, 2], 8001)));
        assert_eq!(one.to_string(), "10.0.0.2:8001");
        assert_eq!(one.authority(), "workers:8001");
        let number: RemoteAddress = "grpc://[::1]:8001".parse().unwrap();
        assert!(name.is_name() && !number.is_name());
        let path: RemoteAddress = "unix:/run/far.sock".parse().unwrap();
        assert!(!path.is_name());
        assert_eq!(path.authority(), "localhost");
    }
}
