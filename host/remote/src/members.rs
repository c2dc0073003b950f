//! The servers of a fleet as its name lists them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::address::RemoteAddress;

/// A server's name in its fleet: by it the server keeps its slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberName {
    /// One of the addresses of a name of DNS.
    Address(SocketAddr),
    /// The name that it has registered.
    Registered(String),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) address: RemoteAddress,
    /// Another one under the same name: the process there is another one. 0 with DNS.
    pub(crate) incarnation: u64,
}

/// The servers that are listed now.
pub(crate) type Members = BTreeMap<MemberName, Member>;
