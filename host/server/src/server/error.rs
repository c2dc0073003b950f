//! Why a server does not start, or ends.

use std::io;

use switchyard_policy::engine::EngineError;
use switchyard_policy::recording::RecordingError;
use switchyard_profile::MeasureError;
use thiserror::Error;

use crate::assembly::AssemblyError;
use crate::backend::{DirectError, OutputsError};
use crate::driver::PoolError;
use crate::policies::PoliciesError;
use crate::prepare::PreparerError;
use crate::shadow::ShadowError;
use crate::sockets::{BindError, ListenAddress};
use crate::tls::TlsError;

/// Why a server ended without being asked to.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The driver of a pool panicked.
    #[error(
        "pool {pool}: its scheduler failed; restart the server, and report the panic in its log"
    )]
    Driver {
        /// The pool.
        pool: String,
    },
    /// The worker of `switchyard worker` is lost.
    #[error("the worker is lost: {reason}; restart it")]
    Worker {
        /// Why.
        reason: String,
    },
    /// The thread that accepts connections cannot be started.
    #[error("the HTTP port: no thread accepts connections: {0}; raise the limit of threads")]
    Accept(#[from] io::Error),
}

/// Why a server could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The zoo or the profile cannot be used.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// A card names outputs that the server does not make.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// A worker without a scheduler could not be started.
    #[error(transparent)]
    Direct(#[from] DirectError),
    /// The configuration has no such worker.
    #[error("no [[worker]] is called `{worker}`; there are: {known}")]
    NoWorker {
        /// The worker.
        worker: String,
        /// Those of the configuration.
        known: String,
    },
    /// A pool could not be started.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The wasm engine cannot be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A pool has no policy that serves.
    #[error(
        "pool {pool}: {reason}; mend it, or start with the fallback: `required = false` in [policies]"
    )]
    NoPolicy {
        /// The pool.
        pool: String,
        /// Why its policy was refused.
        reason: String,
    },
    /// A pool's policies cannot be managed.
    #[error("pool {pool}: {error}")]
    Policies {
        /// The pool.
        pool: String,
        /// The reason.
        error: PoliciesError,
    },
    /// A pool's shadow cannot be started.
    #[error("pool {pool}: shadow: {error}")]
    Shadow {
        /// The pool.
        pool: String,
        /// The reason.
        error: ShadowError,
    },
    /// A pool's prepare command cannot be used.
    #[error("pool {pool}: prepare: {error}")]
    Prepare {
        /// The pool.
        pool: String,
        /// The reason.
        error: PreparerError,
    },
    /// A pool's windows cannot be recorded.
    #[error("pool {pool}: record: {error}")]
    Record {
        /// The pool.
        pool: String,
        /// The reason.
        error: RecordingError,
    },
    /// Traces cannot be exported.
    #[error("server.traces: {0}")]
    Traces(io::Error),
    /// The files of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An address cannot be listened on.
    #[error("server.{field}: {address}: {error}{}", error.way_out(field, address))]
    Listen {
        /// The field of the configuration.
        field: &'static str,
        /// The address.
        address: ListenAddress,
        /// The reason.
        error: BindError,
    },
}

// === impl StartError ===

impl StartError {
    /// Whether the start was cancelled and did not fail.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Assembly(AssemblyError::Measure(MeasureError::Cancelled))
        )
    }
}
