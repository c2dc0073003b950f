//! The address of a port: `ADDRESS:PORT`, or `unix:PATH`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Before the path of a Unix socket.
const UNIX: &str = "unix:";

/// Where a port listens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum ListenAddress {
    /// An address of this machine and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("must be ADDRESS:PORT or unix:PATH, such as \"{example}\"")]
pub struct WrongAddress {
    /// An address near the text.
    example: String,
}

// === impl ListenAddress ===

impl ListenAddress {
    /// The address of TCP; `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Whether only programs of this machine reach it. Those of other machines need a proxy.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Whether the system refuses one of the two addresses while a port listens on the other one.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(one), Self::Tcp(two)) => {
                one.port() == two.port()
                    && one.port() != 0
                    && (one.ip() == two.ip()
                        || covers(one.ip(), two.ip())
                        || covers(two.ip(), one.ip()))
            }
            (Self::Unix(one), Self::Unix(two)) => one == two,
            _ => false,
        }
    }

    /// A relative path starts at `folder` from now on.
    pub(crate) fn resolve(&mut self, folder: &Path) {
        if let Self::Unix(path) = self {
            *path = folder.join(&*path);
        }
    }
}

/// Whether a socket on `all` takes the connections to `one` too. One on `[::]` takes those of IPv4.
fn covers(all: IpAddr, one: IpAddr) -> bool {
    all.is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenAddress {
    type Err = WrongAddress;

    fn from_str(text: &str) -> Result<Self, WrongAddress> {
        let parsed = match text.strip_prefix(UNIX) {
            Some("") => None,
            Some(path) => Some(Self::Unix(path.into())),
            None => text.parse().ok().map(Self::Tcp),
        };
        parsed.ok_or_else(|| WrongAddress::near(text))
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = WrongAddress;

    fn try_from(text: String) -> Result<Self, WrongAddress> {
        text.parse()
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> Self {
        address.to_string()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

// === impl WrongAddress ===

impl WrongAddress {
    fn near(text: &str) -> Self {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let at = |host: IpAddr, port| SocketAddr::new(host, port).to_string();
        let example = match (text.parse(), host, port.parse()) {
            // Before the ports: `::1` has none.
            (Ok(bare), ..) => at(bare, 8000),
            _ if text == UNIX => format!("{UNIX}/run/switchyard/http.sock"),
            _ if text.starts_with(['/', '.']) => format!("{UNIX}{text}"),
            (_, "" | "*", Ok(port)) => at(Ipv4Addr::UNSPECIFIED.into(), port),
            (.., Ok(port)) => at(Ipv4Addr::LOCALHOST.into(), port),
            _ => at(Ipv4Addr::LOCALHOST.into(), text.parse().unwrap_or(8000)),
        };
        Self { example }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parsed(text: &str) -> Result<ListenAddress, String> {
        text.parse().map_err(|wrong: WrongAddress| wrong.example)
    }

    #[test]
    fn an_address_is_of_tcp_or_a_path() {
        for text in ["127.0.0.1:0", "[::1]:8000", "unix:/run/a.sock", "unix:a b"] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
        for (wrong, near) in [
            ("localhost", "127.0.0.1:8000"),
            ("localhost:9000", "127.0.0.1:9000"),
            (":9000", "0.0.0.0:9000"),
            ("9000", "127.0.0.1:9000"),
            ("10.0.0.1", "10.0.0.1:8000"),
            ("::1", "[::1]:8000"),
            ("127.0.0.1:70000", "127.0.0.1:8000"),
            ("/run/a.sock", "unix:/run/a.sock"),
            ("unix:", "unix:/run/switchyard/http.sock"),
        ] {
            assert_eq!(parsed(wrong).unwrap_err(), near, "{wrong}");
        }
    }

    #[test]
    fn two_ports_overlap_where_the_system_refuses_the_second() {
        let overlap = |one: &str, two: &str| {
            let (one, two) = (parsed(one).unwrap(), parsed(two).unwrap());
            assert_eq!(one.overlaps(&two), two.overlaps(&one));
            one.overlaps(&two)
        };
        assert!(overlap("127.0.0.1:1", "127.0.0.1:1"));
        assert!(overlap("0.0.0.0:1", "127.0.0.1:1"));
        assert!(overlap("[::]:1", "127.0.0.1:1"));
        assert!(overlap("unix:a", "unix:a"));
        assert!(!overlap("0.0.0.0:1", "[::1]:1"));
        assert!(!overlap("127.0.0.1:0", "127.0.0.1:0"));
        assert!(!overlap("127.0.0.1:1", "127.0.0.2:1"));
        assert!(!overlap("127.0.0.1:1", "unix:a"));
    }

    #[test]
    fn a_path_starts_at_the_folder() {
        let mut address = parsed("unix:a.sock").unwrap();
        address.resolve(Path::new("/run"));
        assert_eq!(address.to_string(), "unix:/run/a.sock");
        assert!(address.is_local() && parsed("[::ffff:127.0.0.1]:1").unwrap().is_local());
        assert!(!parsed("0.0.0.0:1").unwrap().is_local());
    }
}
