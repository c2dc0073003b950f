//! The handle by which other threads ask for swaps and rollbacks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use switchyard_policy::loader::LoadError;
use switchyard_policy::{PolicyFileEvent, StoreError};
use switchyard_remote::{Fence, NotActive};
use thiserror::Error;
use tokio::sync::{oneshot, watch};

use super::canary::CanarySettings;
use super::nearest;
use super::report::{PoliciesStatus, Swap, Version};

/// Asks for swaps and rollbacks. Clones ask the same thread.
#[derive(Clone)]
pub struct PoliciesHandle {
    pub(super) requests: Sender<Request>,
    pub(super) status: Arc<Mutex<PoliciesStatus>>,
    /// The hash of the version that serves.
    pub(super) active: watch::Receiver<Option<String>>,
    /// Folder of the policies that come with the program.
    pub(super) bundled: Option<PathBuf>,
    /// Where schedulers share their policies: only the active one takes orders.
    pub(super) fence: Option<Arc<Fence>>,
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
    /// Another version serves than the order expects.
    #[error(
        "version {active} serves, the order expects {expected}: look at the history and order again"
    )]
    Conflict {
        /// The first digits of the hash of the version that serves; `none` if none does.
        active: String,
        /// The digits in the order.
        expected: String,
    },
    /// Nothing serves that a candidate could be compared with.
    #[error(
        "the pool has no policy that a candidate could be compared with: swap to the candidate"
    )]
    NoPolicy,
    /// A promotion would install another version than the shadow's.
    #[error(
        "the shadow compares version {compared} of {}, a promotion would install {found}: its file or the \
         settings are others; settings of [pool.shadow] belong into the file's .toml, or order `swap`",
        file.display()
    )]
    NotCompared {
        /// The candidate.
        file: PathBuf,
        /// The first digits of the hash of the shadow's version.
        compared: String,
        /// Those of the version that would serve.
        found: String,
    },
    /// No canary runs.
    #[error("no canary runs in the pool")]
    NoCanary,
    /// It serves, but its files could not be written.
    #[error("it serves, but its files could not be written, so a restart loads the old ones: {0}")]
    NotWritten(#[from] StoreError),
    /// Another scheduler changes the policy that both share.
    #[error("order it there: this scheduler {0}")]
    NotActive(#[from] NotActive),
    /// The pool is shutting down.
    #[error("the pool is shutting down")]
    Stopped,
}

pub(super) type SwapReply = oneshot::Sender<Result<Swap, SwapError>>;

/// An operator's order to change the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct SwapOrder {
    /// The policy that serves afterwards.
    pub to: SwapTarget,
    /// First digits of the hash of the version that serves before, as the operator saw it. Another one is
    /// a conflict.
    pub expect: Option<String>,
    /// Name of the operator.
    pub by: String,
}

/// The policy of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum SwapTarget {
    /// The component in this file, with its settings and artifacts.
    File(PathBuf),
    /// The same, if it is the version of this hash, with which a shadow was compared.
    Compared(PathBuf, String),
    /// The version that served before; while a canary runs the one that serves with it.
    Previous,
    /// The version whose hash begins with these digits.
    Version(String),
    /// The policy that serves, and the component in this file with a share of the requests.
    Canary(PathBuf, CanarySettings),
    /// The candidate of the canary that runs.
    Candidate,
}

/// A request to the thread.
pub(super) enum Request {
    File(PolicyFileEvent),
    Order(SwapOrder, SwapReply),
    Stop,
}

// === impl SwapTarget ===

impl SwapTarget {
    /// The component that it names.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) | Self::Compared(file, _) => Some(file),
            _ => None,
        }
    }
}

// === impl SwapOrder ===

impl SwapOrder {
    fn within_process(to: SwapTarget) -> Self {
        Self {
            to,
            expect: None,
            by: "the server".to_owned(),
        }
    }
}

// === impl PoliciesHandle ===

impl PoliciesHandle {
    /// The hash of the version that serves, as it changes.
    pub(super) fn active(&self) -> watch::Receiver<Option<String>> {
        self.active.clone()
    }

    /// Switches to a version that another scheduler has ordered.
    pub(super) async fn take(&self, file: PathBuf, by: String) -> Result<Swap, SwapError> {
        let order = SwapOrder {
            to: SwapTarget::File(file),
            expect: None,
            by,
        };
        self.ask(|reply| Request::Order(order, reply)).await
    }

    /// Loads a component and switches to it.
    ///
    /// # Errors
    /// It was not loaded; the old policy serves on.
    pub async fn swap(&self, file: PathBuf) -> Result<Swap, SwapError> {
        self.order(SwapOrder::within_process(SwapTarget::File(file)))
            .await
    }

    /// Switches back to the version whose content hash begins with `digits`, by default to the
    /// previous one.
    ///
    /// # Errors
    /// There is no such version, or it was not loaded again.
    pub async fn rollback(&self, digits: Option<String>) -> Result<Swap, SwapError> {
        let to = digits.map_or(SwapTarget::Previous, SwapTarget::Version);
        self.order(SwapOrder::within_process(to)).await
    }

    /// Carries out an order. The files of the pool's policy become those of the version, so that it
    /// serves after a restart too.
    ///
    /// # Errors
    /// The version was not loaded, another one serves than expected, files cannot be written, or another
    /// scheduler has to be asked.
    pub async fn order(&self, order: SwapOrder) -> Result<Swap, SwapError> {
        if let Some(fence) = &self.fence {
            fence.enter()?;
        }
        self.ask(|reply| Request::Order(order, reply)).await
    }

    /// The file of a policy that an order names: in the folder of policies, otherwise in that of the
    /// program. Orders write the version that serves into the file of the pool's policy, which may so
    /// hold a policy of another name: then the program's goes first.
    pub(crate) fn component(&self, name: &str) -> PathBuf {
        let status = lock(&self.status);
        let own = Path::new(&status.file);
        let file = own.with_file_name(format!("{name}.wasm"));
        let serves = status.active.as_ref().map(Version::name);
        let is_other = file == own && serves.is_some_and(|serves| serves != name);
        let bundled = self.bundled.as_ref().map(|at| in_folder(at, name));
        match bundled {
            Some(bundled) if (is_other || !file.exists()) && bundled.is_file() => bundled,
            _ => file,
        }
    }

    /// The end of a message about a missing policy: one with a similar name.
    pub(crate) fn hint(&self, missing: &Path) -> String {
        nearest::hint(missing, self.bundled.as_deref())
    }

    /// The folders that an order's policy may be in.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let own = PathBuf::from(&lock(&self.status).file);
        let own = own.parent().map(Path::to_owned);
        own.into_iter().chain(self.bundled.clone()).collect()
    }

    /// Whether a canary runs.
    pub fn runs_canary(&self) -> bool {
        let status = lock(&self.status);
        status.canary.as_ref().is_some_and(|canary| canary.runs)
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

fn in_folder(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.wasm"))
}

pub(super) fn lock(status: &Mutex<PoliciesStatus>) -> MutexGuard<'_, PoliciesStatus> {
    // The status is consistent wherever its thread may panic.
    status.lock().unwrap_or_else(PoisonError::into_inner)
}
