//! How many connections each client has: each address, and on a Unix socket each user.
//!
//! Without a share, one client holds every permit: its connections may all be busy with requests
//! that are legal and slow. Loopback has no exception, because a proxy or a forwarded port on this
//! machine brings foreign clients in under that address; the default, half of all connections,
//! leaves a single proxy room.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};

use tokio::net::TcpStream;

use super::port::Port;
use crate::sockets::Peer;

/// Bits of an IPv6 address that name a client's network: one client has all addresses under them.
const NETWORK_BITS: u128 = !0 << 64;

/// A client that has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClientAddress {
    Ip(IpAddr),
    /// Programs on this machine, by the number of their user.
    User(Option<u32>),
}

/// The connections of each address.
#[derive(Debug)]
pub(super) struct ClientShares {
    by_address: HashMap<ClientAddress, ClientShare>,
    max: usize,
}

#[derive(Debug, Default)]
struct ClientShare {
    connections: usize,
    /// The log has its refusal.
    is_logged: bool,
}

// === impl ClientAddress ===

impl ClientAddress {
    pub(super) fn of(peer: Peer) -> Self {
        let address = match peer {
            Peer::Tcp(address) => address.ip().to_canonical(),
            Peer::User(user) => return Self::User(user),
        };
        Self::Ip(match address {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK_BITS))
            }
            IpAddr::V4(_) => address,
        })
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::User(user) => Peer::User(*user).fmt(f),
        }
    }
}

// === impl ClientShares ===

impl ClientShares {
    pub(super) fn new(max: usize) -> Self {
        Self {
            by_address: HashMap::new(),
            max: max.max(1),
        }
    }

    /// Whether the address may have one more connection. Logs the first refusal of an address that
    /// has had a connection all the time since.
    pub(super) fn has_room(&mut self, address: ClientAddress) -> bool {
        let Some(share) = self.by_address.get_mut(&address) else {
            return true;
        };
        if share.connections < self.max {
            return true;
        }
        if !share.is_logged {
            share.is_logged = true;
            tracing::warn!(
                client = %address,
                connections_per_client_max = self.max,
                "this client has its share of connections; further ones get 503"
            );
        }
        false
    }

    pub(super) fn add(&mut self, address: ClientAddress) {
        self.by_address.entry(address).or_default().connections += 1;
    }

    pub(super) fn remove(&mut self, address: ClientAddress) {
        if let Some(share) = self.by_address.get_mut(&address) {
            share.connections -= 1;
            if share.connections == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    /// Answers a connection above the share and closes it. Best effort: a client whose request is
    /// on its way sees a reset connection instead.
    pub(super) fn refuse(&self, stream: TcpStream, port: Port) {
        let text = format!(
            "connections: this client has {} of them, its share \
             (server.connections_per_client_max)",
            self.max
        );
        let answer = match port {
            Port::Http => of_http(&text),
            Port::Grpc => of_grpc(&text),
        };
        // The socket does not block, and its empty buffer has room.
        if let Ok(mut stream) = stream.into_std() {
            let _ = stream.write(&answer);
        }
    }
}

fn of_http(text: &str) -> Vec<u8> {
    let body = format!(r#"{{"error":"{text}"}}"#);
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    answer.into_bytes()
}

/// The first frames of HTTP/2: empty settings, and a `GOAWAY` for "enhance your calm" with the text.
fn of_grpc(text: &str) -> Vec<u8> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GOAWAY: [u8; 6] = [7, 0, 0, 0, 0, 0];
    const LAST_STREAM: [u8; 4] = [0; 4];
    const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];
    let length = (LAST_STREAM.len() + ENHANCE_YOUR_CALM.len() + text.len()) as u32;
    let [_, length @ ..] = length.to_be_bytes();
    let frames: [&[u8]; 6] = [
        &SETTINGS,
        &length,
        &GOAWAY,
        &LAST_STREAM,
        &ENHANCE_YOUR_CALM,
        text.as_bytes(),
    ];
    frames.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ClientAddress {
        ClientAddress::of(Peer::Tcp((text.parse::<IpAddr>().unwrap(), 1).into()))
    }

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
        let user = |number| ClientAddress::of(Peer::User(number));
        assert_eq!(user(Some(7)), user(Some(7)));
        assert_ne!(user(Some(7)), user(None));
    }

    #[test]
    fn each_client_has_its_share() {
        let mut shares = ClientShares::new(2);
        let (a, b) = (address("10.0.0.1"), address("10.0.0.2"));
        shares.add(a);
        assert!(shares.has_room(a));
        shares.add(a);
        assert!(!shares.has_room(a) && shares.has_room(b));
        shares.remove(a);
        assert!(shares.has_room(a));
        shares.remove(a);
        assert!(shares.by_address.is_empty());
    }
}
