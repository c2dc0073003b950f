//! Where the servers of a fleet are found: a name of DNS, or a prefix of etcd.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use crate::address::RemoteAddress;
use crate::etcd::{Etcd, members};
use crate::members::{Member, MemberName, Members};
use crate::resolver::NameResolver;

/// Where the servers of a fleet are found.
#[derive(Clone, Debug)]
pub enum MemberSource {
    /// The addresses of the host of the fleet's address.
    Name {
        /// Time between two look-ups.
        resolve_every: Duration,
        /// Finds the addresses.
        resolver: NameResolver,
    },
    /// The workers that have registered in etcd.
    Etcd {
        /// How etcd is reached.
        etcd: Arc<Etcd>,
        /// The prefix of their keys.
        prefix: String,
    },
}

// === impl MemberSource ===

impl MemberSource {
    /// The servers now.
    ///
    /// # Errors
    /// The reason of the resolver or of etcd.
    pub(crate) async fn look_up(&self, name: &RemoteAddress) -> Result<Members, String> {
        match self {
            Self::Name { resolver, .. } => {
                let found = resolver.addresses(&name.host, name.port).await?;
                let member = |at| {
                    let address = name.at(at);
                    let incarnation = 0;
                    (
                        MemberName::Address(at),
                        Member {
                            address,
                            incarnation,
                        },
                    )
                };
                Ok(found.into_iter().map(member).collect())
            }
            Self::Etcd { etcd, prefix } => members::look_up(etcd, prefix).await,
        }
    }

    /// Tells the servers, and whenever they may have changed, until the receiver is gone.
    pub(crate) async fn follow(&self, name: &RemoteAddress, tell: Sender<Result<Members, String>>) {
        match self {
            Self::Name { resolve_every, .. } => {
                while tell.send(self.look_up(name).await).await.is_ok() {
                    sleep(*resolve_every).await;
                }
            }
            Self::Etcd { etcd, prefix } => members::follow(etcd, prefix, tell).await,
        }
    }
}
