//! How a server is used, and why it is not.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::address::RemoteAddress;
use crate::metadata::Misfit;
use crate::model::RemoteModel;
use crate::resolver::NameResolver;
use crate::tls::RemoteTls;

/// How a server is used.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The server.
    pub address: RemoteAddress,
    /// TLS of the link; none: plain.
    pub tls: Option<RemoteTls>,
    /// Longest time of a batch; then the worker counts as lost.
    pub timeout: Duration,
    /// Its models, by variant.
    pub models: Arc<[RemoteModel]>,
}

/// How the servers of a name are used.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// How each is used. The host of the address is the name.
    pub server: RemoteOptions,
    /// Most servers that are used.
    pub at_most: usize,
    /// Time between two look-ups of the name.
    pub resolve_every: Duration,
    /// Finds the addresses of the name.
    pub resolver: NameResolver,
}

/// Why a server is not used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// It does not answer, or is not ready. Later it may be.
    #[error("{0}")]
    Away(String),
    /// It lacks a model.
    #[error("{address}: {model}: {reason}")]
    Model {
        /// The server.
        address: String,
        /// `app/variant`.
        model: String,
        /// Its answer.
        reason: String,
    },
    /// A model differs from the app's card.
    #[error("{address}: {misfit}; correct the names of the worker's `remote.models`, or the card")]
    Misfit {
        /// The server.
        address: String,
        /// The difference.
        misfit: Misfit,
    },
}

// === impl RemoteOptions ===

impl RemoteOptions {
    /// For one of the addresses of its host.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            address: self.address.at(address),
            ..self.clone()
        }
    }
}

// === impl FleetOptions ===

impl FleetOptions {
    /// The addresses of the name now.
    ///
    /// # Errors
    /// The resolver's reason.
    pub(crate) async fn look_up(&self) -> Result<BTreeSet<SocketAddr>, String> {
        let name = &self.server.address;
        self.resolver.addresses(&name.host, name.port).await
    }
}
