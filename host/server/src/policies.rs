//! Hot reload of policies: a thread per pool loads policies outside of the serving path, tries them
//! on recorded windows, and hands those that pass to the driver.
//!
//! If any step fails, the old policy serves on and the log gives the reason. In data order:
//! - `watch`: events of the policy's file
//! - `handle`: orders of operators to swap and roll back
//! - `manager`: the thread; [`source`]: a component with its settings
//! - `optimizing`: the optimised code of a policy that serves in baseline code
//! - `canary`: a share of the requests for a candidate
//! - `shared`: the policy that other schedulers have too
//! - `kept`: versions on disk, and the files that an order writes
//! - `report`: the result of each attempt; `retry`: when an unreadable file is tried again
//!
//! A pool whose policy file is refused at the start is ready: the fallback serves, as it does after a
//! file was removed while the server ran. Without a file the pool is not ready, since the
//! configuration may name a wrong one.

mod canary;
mod handle;
mod kept;
mod manager;
mod nearest;
mod optimizing;
mod parts;
mod report;
mod retry;
mod running_canary;
mod shared;
pub mod source;
mod watch;

use std::sync::{Arc, Mutex};

use crossbeam_channel::bounded;
use switchyard_policy::files::WatchError;
use switchyard_policy::{LoadStop, PolicyWatcher, VersionStore};
use switchyard_threads::ServiceThread;
use thiserror::Error;
use tokio::sync::watch::channel;

use self::handle::Request;
use self::manager::Manager;
use self::shared::{SharingParts, share};
use crate::readiness::Awaited;

pub use self::canary::CanarySettings;
pub use self::handle::{PoliciesHandle, SwapError, SwapOrder, SwapTarget};
pub(crate) use self::nearest::hint;
pub use self::parts::PoliciesParts;
pub use self::report::{CanaryStatus, PoliciesStatus, Swap, SwapResult, Version};
pub use self::shared::SharedPolicy;
pub(crate) use self::watch::watch_file;

/// Requests that may wait for the thread; watchers and operators wait for room.
const REQUESTS_MAX: usize = 64;

/// Manages a pool's policies until dropped.
pub struct Policies {
    handle: PoliciesHandle,
    stop: LoadStop,
    // Dropped in this order: no version and no file event comes, and the thread is stopped and joined.
    _sharing: Option<ServiceThread>,
    _watcher: PolicyWatcher,
    _thread: ServiceThread,
}

/// Why a pool's policies cannot be managed.
#[derive(Debug, Error)]
pub enum PoliciesError {
    /// The folder cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The system gives no thread.
    #[error("no thread for policies: {0}")]
    Thread(#[from] std::io::Error),
}

// === impl Policies ===

impl Policies {
    /// Starts watching, then loads the policy that is there.
    ///
    /// # Errors
    /// The folder cannot be watched, or the system refuses a thread.
    pub fn start(mut parts: PoliciesParts) -> Result<Self, PoliciesError> {
        let (requests, inbox) = bounded(REQUESTS_MAX);
        let status = Arc::new(Mutex::new(PoliciesStatus::new(&parts.file)));
        let (active, serves) = channel(None);
        let shared = parts.shared.take();
        let fence = shared.as_ref().and_then(|shared| shared.fence.clone());
        let handle = PoliciesHandle {
            requests: requests.clone(),
            status: Arc::clone(&status),
            active: serves,
            bundled: parts.bundled.take(),
            fence,
        };
        let pool = parts.pool.name();
        let readiness = parts.pool.readiness();
        readiness.wait_for(Awaited::Policy, "its policy is being loaded");
        let events = requests.clone();
        let watcher = watch_file(&parts.file, move |event| {
            // An error means that the pool is shutting down.
            let _ = events.send(Request::File(event));
        })?;
        let name = format!("{pool}-policies");
        let stop = parts.loader.stop();
        let sharing = shared.map(|shared| SharingParts {
            shared,
            pool: pool.to_owned(),
            handle: handle.clone(),
            settings: parts.settings.clone().unwrap_or_default(),
            store: VersionStore::open(parts.versions.clone(), parts.history).ok(),
            registry: parts.registry.clone(),
        });
        let manager = Manager::new(parts, status, active);
        let thread = ServiceThread::spawn(name, move || manager.run(&inbox))?;
        let thread = thread.with_stop(move || {
            // An error means that the thread has ended.
            let _ = requests.send(Request::Stop);
        });
        Ok(Self {
            handle,
            stop,
            _sharing: sharing.map(share).transpose()?,
            _watcher: watcher,
            _thread: thread,
        })
    }

    /// The handle that asks for swaps and rollbacks.
    pub fn handle(&self) -> &PoliciesHandle {
        &self.handle
    }
}

impl Drop for Policies {
    /// Gives up a load under way, for which the watcher and the thread would wait.
    fn drop(&mut self) {
        self.stop.stop();
    }
}
