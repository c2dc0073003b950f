//! The handle by which other threads ask for swaps and rollbacks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use switchyard_policy::PolicyFileEvent;
use switchyard_policy::loader::LoadError;
use thiserror::Error;
use tokio::sync::oneshot;

use super::report::{PoliciesStatus, Swap};

/// Asks for swaps and rollbacks. Clones ask the same thread.
#[derive(Clone)]
pub struct PoliciesHandle {
    requests: Sender<Request>,
    status: Arc<Mutex<PoliciesStatus>>,
}

/// Why a swap did not happen.
#[derive(Debug, Error)]
pub enum SwapError {
    /// The policy was not loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// No version that served before fits.
    #[error("no version to roll back to: {0}")]
    NoVersion(String),
    /// The pool is shutting down.
    #[error("the pool is shutting down")]
    Stopped,
}

pub(super) type SwapReply = oneshot::Sender<Result<Swap, SwapError>>;

/// A request to the thread.
pub(super) enum Request {
    File(PolicyFileEvent),
    Swap(PathBuf, SwapReply),
    Rollback(Option<String>, SwapReply),
    Stop,
}

// === impl PoliciesHandle ===

impl PoliciesHandle {
    pub(super) fn new(requests: Sender<Request>, status: Arc<Mutex<PoliciesStatus>>) -> Self {
        Self { requests, status }
    }

    /// Loads a component and switches to it.
    ///
    /// # Errors
    /// It was not loaded; the old policy serves on.
    pub async fn swap(&self, file: PathBuf) -> Result<Swap, SwapError> {
        self.ask(|reply| Request::Swap(file, reply)).await
    }

    /// Switches back to the version whose content hash begins with `digits`, by default to the
    /// previous one.
    ///
    /// # Errors
    /// There is no such version, or it was not loaded again.
    pub async fn rollback(&self, digits: Option<String>) -> Result<Swap, SwapError> {
        self.ask(|reply| Request::Rollback(digits, reply)).await
    }

    /// The active version, the earlier ones and the latest attempts.
    pub fn status(&self) -> PoliciesStatus {
        lock(&self.status).clone()
    }

    async fn ask(&self, request: impl FnOnce(SwapReply) -> Request) -> Result<Swap, SwapError> {
        let (reply, answer) = oneshot::channel();
        let (requests, request) = (self.requests.clone(), request(reply));
        let sent = tokio::task::spawn_blocking(move || requests.send(request).is_ok());
        if !sent.await.unwrap_or(false) {
            return Err(SwapError::Stopped);
        }
        answer.await.unwrap_or(Err(SwapError::Stopped))
    }
}

pub(super) fn lock(status: &Mutex<PoliciesStatus>) -> MutexGuard<'_, PoliciesStatus> {
    // The status is consistent wherever its thread may panic.
    status.lock().unwrap_or_else(PoisonError::into_inner)
}
