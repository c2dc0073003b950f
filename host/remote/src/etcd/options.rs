//! How etcd is reached.

use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::address::RemoteAddress;
use crate::tls::RemoteTls;

/// How etcd is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOptions {
    /// Its members, one at least. They are tried in turn.
    pub endpoints: Vec<EtcdAddress>,
    /// TLS of the connections; none: plain.
    pub tls: Option<RemoteTls>,
    /// How long it keeps the entries of a process that is silent.
    pub ttl: Duration,
}

/// The address of a member: `http://HOST:PORT`, or `https://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAddress(pub(crate) RemoteAddress);

/// An address of another form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}`, must be `http://HOST:PORT` or `https://HOST:PORT` with a port from 1 to 65535, such as \
     http://127.0.0.1:2379"
)]
pub struct WrongEtcdAddress(String);

// === impl EtcdAddress ===

impl EtcdAddress {
    /// With TLS.
    pub fn is_tls(&self) -> bool {
        self.0.is_tls
    }
}

impl FromStr for EtcdAddress {
    type Err = WrongEtcdAddress;

    fn from_str(text: &str) -> Result<Self, WrongEtcdAddress> {
        let wrong = || WrongEtcdAddress(text.to_owned());
        let rest = text.strip_prefix("http").ok_or_else(wrong)?;
        let as_grpc = format!("grpc{}", rest.strip_suffix('/').unwrap_or(rest));
        as_grpc.parse().map(Self).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_of_http() {
        for (text, is_tls) in [
            ("http://127.0.0.1:2379", Some(false)),
            ("https://etcd-0.etcd:2379/", Some(true)),
            ("http://[::1]:2379", Some(false)),
            ("127.0.0.1:2379", None),
            ("grpc://127.0.0.1:2379", None),
            ("http://127.0.0.1", None),
            ("httpx://127.0.0.1:2379", None),
        ] {
            let read = text.parse::<EtcdAddress>();
            assert_eq!(read.ok().map(|at| at.is_tls()), is_tls, "{text}");
        }
    }
}
