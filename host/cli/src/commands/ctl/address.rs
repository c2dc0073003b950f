//! The admin port's address as `--admin` names it: `ADDRESS:PORT`, `unix:PATH`, or `https://HOST:PORT`.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use switchyard_server::sockets::ListenAddress;

use crate::commands::failure::Failure;
use crate::probe::{self, Answer, PATIENCE};

/// An address without its certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AdminAddress {
    /// Plain HTTP.
    Plain(ListenAddress),
    /// TLS: the host and its port.
    Tls(String, u16),
}

/// The way to a server.
pub(super) enum AdminServer {
    Plain(ListenAddress),
    Tls {
        host: String,
        port: u16,
        config: Arc<ClientConfig>,
    },
}

// === impl AdminAddress ===

impl FromStr for AdminAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "must be ADDRESS:PORT, unix:PATH or https://HOST:PORT".to_owned();
        let Some(authority) = text.strip_prefix("https://") else {
            let plain = text.strip_prefix("http://").unwrap_or(text);
            let plain = plain.trim_end_matches('/');
            // No other name: beyond this machine the port has TLS.
            let plain = match plain.strip_prefix("localhost:") {
                Some(port) => format!("{}:{port}", Ipv4Addr::LOCALHOST),
                None => plain.to_owned(),
            };
            return plain.parse().map(Self::Plain).map_err(|_| expected());
        };
        let (host, port) = authority.rsplit_once(':').ok_or_else(expected)?;
        let port = port.trim_end_matches('/').parse().map_err(|_| expected())?;
        match host.is_empty() || host.contains(['/', '@']) {
            true => Err(expected()),
            false => Ok(Self::Tls(host.to_owned(), port)),
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(address) => address.fmt(f),
            Self::Tls(host, port) => write!(f, "https://{host}:{port}"),
        }
    }
}

// === impl AdminServer ===

impl AdminServer {
    /// The way to this address; `ca` has the certificates that a server's is compared with.
    pub(super) fn new(address: &AdminAddress, ca: Option<&Path>) -> Result<Self, Failure> {
        match (address, ca) {
            (AdminAddress::Plain(address), None) => Ok(Self::Plain(address.clone())),
            (AdminAddress::Plain(address), Some(_)) => Err(Failure::input(format!(
                "--admin {address}: --ca needs a port with TLS: --admin https://HOST:PORT"
            ))),
            (AdminAddress::Tls(..), None) => Err(Failure::input(format!(
                "--admin {address}: --ca is missing: the file (PEM) with the certificate of the server's \
                 authority"
            ))),
            (AdminAddress::Tls(host, port), Some(ca)) => {
                let refuse = |reason| Failure::input(format!("--ca {}: {reason}", ca.display()));
                Ok(Self::Tls {
                    host: host.clone(),
                    port: *port,
                    config: Arc::new(trusting(ca).map_err(refuse)?),
                })
            }
        }
    }

    /// The answer to a request, as [`probe::ask`].
    pub(super) fn ask(&self, request: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let (host, port, config) = match self {
            Self::Plain(address) => return probe::ask(address, request, headers, body),
            Self::Tls { host, port, config } => (host, *port, config),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
        let addresses: Vec<_> = (bare, port).to_socket_addrs()?.collect();
        let mut connected = Err(io::ErrorKind::NotFound.into());
        for address in addresses {
            connected = TcpStream::connect_timeout(&address, PATIENCE);
            if connected.is_ok() {
                break;
            }
        }
        let stream = connected?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let client = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let stream = StreamOwned::new(client, stream);
        let host = format!("{host}:{port}");
        probe::exchange(stream, &host, request, headers, body).map_err(plain)
    }
}

/// Trusts the servers with certificates of these authorities.
fn trusting(ca: &Path) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let read = CertificateDer::pem_file_iter(ca).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for authority in read.map_err(|error| error.to_string())? {
        roots.add(authority).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("has no certificate (PEM)".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The reason of a failed handshake in words of this command.
fn plain(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(rustls::Error::InvalidCertificate(reason)) => io::Error::other(format!(
            "its certificate is not accepted: {reason}; --ca names the file of its authority"
        )),
        Some(rustls::Error::InvalidMessage(_)) => {
            io::Error::other("the port serves no TLS: leave `https://` and --ca out")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn addresses_are_plain_or_https() {
        let parsed = |text: &str| text.parse::<AdminAddress>();
        let plain = AdminAddress::Plain("127.0.0.1:8002".parse().unwrap());
        assert_eq!(parsed("127.0.0.1:8002"), Ok(plain.clone()));
        for same in [
            "http://127.0.0.1:8002",
            "localhost:8002",
            "http://localhost:8002/",
        ] {
            assert_eq!(parsed(same), Ok(plain.clone()), "{same}");
        }
        let unix = AdminAddress::Plain(ListenAddress::Unix("/run/admin.sock".into()));
        assert_eq!(parsed("unix:/run/admin.sock"), Ok(unix));
        for shown in ["https://admin.example.org:8002", "https://[::1]:8002"] {
            assert_eq!(parsed(shown).unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            "localhost",
            "https://host",
            "https://:1",
            "https://a@b:1",
            "https://h:p",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tls_needs_its_authority_and_plain_http_none() {
        let tls = AdminAddress::Tls("localhost".to_owned(), 1);
        assert!(AdminServer::new(&tls, None).is_err());
        let plain = "127.0.0.1:1".parse().unwrap();
        assert!(AdminServer::new(&plain, Some(Path::new("ca.pem"))).is_err());
    }
}
