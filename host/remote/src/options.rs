//! How a server is used, and why it is not.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::address::RemoteAddress;
use crate::members::Members;
use crate::metadata::Misfit;
use crate::model::RemoteModel;
use crate::source::MemberSource;
use crate::tls::RemoteTls;

/// How a server is used.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The server.
    pub address: RemoteAddress,
    /// TLS of the link; none: plain.
    pub tls: Option<RemoteTls>,
    /// Longest time of a batch after the end of those sent before it; then the worker counts as lost.
    pub timeout: Duration,
    /// Its models, by variant.
    pub models: Arc<[RemoteModel]>,
    /// Whether batches of some stages are sent to it.
    pub stages: StageRanges,
}

/// Whether a server runs batches of some stages, and parks activations between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageRanges {
    /// It is not asked: a plain server of the protocol.
    Never,
    /// If its metadata says so.
    IfOffered,
    /// Its metadata must say so: policies count on it.
    Required,
}

/// How the servers of a fleet are used.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// How each is used. Its address is the name that stands for all.
    pub server: RemoteOptions,
    /// Most servers that are used.
    pub at_most: usize,
    /// Where they are found.
    pub source: MemberSource,
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
    /// It runs no ranges of stages.
    #[error(
        "{address}: runs whole models only, and its kind was measured with ranges of stages; start it \
         with this version of `switchyard worker`, or measure the kind again with `switchyard profile`"
    )]
    Stages {
        /// The server.
        address: String,
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
    /// For a server with another address.
    pub(crate) fn at(&self, address: RemoteAddress) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }
}

// === impl FleetOptions ===

impl FleetOptions {
    /// The servers now.
    ///
    /// # Errors
    /// The reason of the resolver or of etcd.
    pub(crate) async fn look_up(&self) -> Result<Members, String> {
        self.source.look_up(&self.server.address).await
    }
}
