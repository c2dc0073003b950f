//! Hot reload: a thread per pool that loads policies off the serving path, tries them on
//! recorded windows, and hands those that pass to the driver.
//!
//! What fails at any step leaves the old policy serving and says why.

mod report;
pub mod source;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::FaultKind;
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_policy::files::{WatchError, WatchOptions};
use switchyard_policy::loader::{LoadCause, LoadError, Loaded, Loader, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{PolicyFileEvent, PolicyHistory, PolicyWatcher};
use thiserror::Error;
use tokio::sync::oneshot;

pub use report::{PoliciesStatus, Swap, SwapResult, Version};

use crate::driver::{Message, PoolHandle};
use crate::observed::Observed;
use crate::readiness::{Awaited, Readiness};
use crate::telemetry::{Registry, names};

/// Recorded windows that a policy is tried on.
const TRIAL_WINDOWS: usize = 16;

/// Requests that may wait for the thread; watchers and operators wait for room.
const REQUESTS_MAX: usize = 64;

/// How long the driver may take to answer, the windows before that left out; past this it has
/// ended.
const DRIVER_PATIENCE: Duration = Duration::from_secs(10);

/// Window calls that may come before the driver looks at its inbox again: of the policy, of
/// its last good version, and what their outcome leads to.
const WINDOWS_BEFORE: u32 = 4;

/// What a pool's policies are managed with.
pub struct PoliciesParts {
    /// The pool.
    pub pool: Arc<PoolHandle>,
    /// The component that is followed.
    pub file: PathBuf,
    /// Settings that go before those in the file beside it.
    pub settings: Option<toml::Table>,
    /// Loads components, under the pool's limits.
    pub loader: Loader,
    /// Longest time one window call may take; the driver answers nobody meanwhile.
    pub window_budget: Duration,
    /// Versions kept for rollback.
    pub history: usize,
    /// Told when the first policy serves.
    pub readiness: Arc<Readiness>,
    /// Where swaps are counted.
    pub registry: Registry,
}

/// Manages a pool's policies until dropped.
pub struct Policies {
    handle: PoliciesHandle,
    // Dropped first: no file event comes after that.
    watcher: Option<PolicyWatcher>,
    thread: Option<JoinHandle<()>>,
}

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

type SwapReply = oneshot::Sender<Result<Swap, SwapError>>;

enum Request {
    File(PolicyFileEvent),
    Swap(PathBuf, SwapReply),
    Rollback(Option<String>, SwapReply),
    Stop,
}

// === impl Policies ===

impl Policies {
    /// Starts watching, then loads the policy that is there.
    ///
    /// # Errors
    /// The folder cannot be watched, or the system gives no thread.
    pub fn start(parts: PoliciesParts) -> Result<Self, PoliciesError> {
        let (requests, inbox) = bounded(REQUESTS_MAX);
        let status = Arc::new(Mutex::new(PoliciesStatus::new(&parts.file)));
        let handle = PoliciesHandle {
            requests: requests.clone(),
            status: Arc::clone(&status),
        };
        let pool = parts.pool.name();
        parts
            .readiness
            .wait_for(pool, Awaited::Policy, "its policy is being loaded");
        let watcher = watch_file(&parts.file, move |event| {
            // An error means that the pool is shutting down.
            let _ = requests.send(Request::File(event));
        })?;
        let name = format!("{pool}-policies");
        let manager = Manager::new(parts, status);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || manager.run(&inbox))?;
        Ok(Self {
            handle,
            watcher: Some(watcher),
            thread: Some(thread),
        })
    }

    /// The way to ask.
    pub fn handle(&self) -> &PoliciesHandle {
        &self.handle
    }
}

impl Drop for Policies {
    fn drop(&mut self) {
        self.watcher = None;
        // An error means that the thread has ended.
        let _ = self.handle.requests.send(Request::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the policies thread panicked");
        }
    }
}

/// Watches a policy's folder and passes on what happens to its file.
pub(crate) fn watch_file(
    file: &Path,
    report: impl Fn(PolicyFileEvent) + Send + 'static,
) -> Result<PolicyWatcher, WatchError> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = file.file_name().map(ToOwned::to_owned);
    PolicyWatcher::start(folder, &WatchOptions::default(), move |event| {
        let (PolicyFileEvent::Changed(path) | PolicyFileEvent::Removed(path)) = &event;
        if path.file_name() == name.as_deref() {
            report(event);
        }
    })
}

// === impl PoliciesHandle ===

impl PoliciesHandle {
    /// Loads a component and switches to it.
    ///
    /// # Errors
    /// It was not loaded; the old policy serves on.
    pub async fn swap(&self, file: PathBuf) -> Result<Swap, SwapError> {
        self.ask(|reply| Request::Swap(file, reply)).await
    }

    /// Switches back: to the version whose content hash begins with `digits`, else to the one
    /// that served before.
    ///
    /// # Errors
    /// There is no such version, or it was not loaded again.
    pub async fn rollback(&self, digits: Option<String>) -> Result<Swap, SwapError> {
        self.ask(|reply| Request::Rollback(digits, reply)).await
    }

    /// What serves, what served, and what was tried.
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

fn lock(status: &Mutex<PoliciesStatus>) -> MutexGuard<'_, PoliciesStatus> {
    // The status is whole at every point where a panic could strike.
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

// === the thread ===

struct Manager {
    pool: Arc<PoolHandle>,
    catalog: Arc<Catalog>,
    file: PathBuf,
    settings: Option<toml::Table>,
    loader: Loader,
    /// How long the driver may take to answer.
    patience: Duration,
    history: PolicyHistory,
    readiness: Arc<Readiness>,
    registry: Registry,
    status: Arc<Mutex<PoliciesStatus>>,
}

impl Manager {
    fn new(parts: PoliciesParts, status: Arc<Mutex<PoliciesStatus>>) -> Self {
        Self {
            catalog: Arc::clone(parts.pool.catalog()),
            pool: parts.pool,
            file: parts.file,
            settings: parts.settings,
            loader: parts.loader,
            patience: DRIVER_PATIENCE + parts.window_budget * WINDOWS_BEFORE,
            history: PolicyHistory::new(parts.history),
            readiness: parts.readiness,
            registry: parts.registry,
            status,
        }
    }

    fn run(mut self, inbox: &Receiver<Request>) {
        let file = self.file.clone();
        if let Err(error) = self.swap_file(&file) {
            let reason = format!("no policy: {error}");
            self.readiness
                .wait_for(self.pool.name(), Awaited::Policy, reason);
        }
        for request in inbox {
            // What fails is logged and counted where it happens; replies to whoever has gone
            // are lost.
            match request {
                Request::File(PolicyFileEvent::Changed(file)) => drop(self.swap_file(&file)),
                Request::File(PolicyFileEvent::Removed(file)) => self.removed(&file),
                Request::Swap(file, reply) => drop(reply.send(self.swap_file(&file))),
                Request::Rollback(to, reply) => drop(reply.send(self.rollback(to.as_deref()))),
                Request::Stop => return,
            }
        }
    }

    fn swap_file(&mut self, file: &Path) -> Result<Swap, SwapError> {
        let settings = self.settings.clone();
        let result = self.attempt(|loader, trial| match settings {
            None => loader.load(file, trial),
            Some(settings) => {
                let version = source::version(file, settings)?;
                loader.load_version(&version, trial)
            }
        });
        self.settle(file, SwapResult::Switched, result)
    }

    fn rollback(&mut self, digits: Option<&str>) -> Result<Swap, SwapError> {
        let version = match digits {
            Some(digits) => self.history.find(digits),
            None => self.history.previous(),
        };
        let Some(version) = version.cloned() else {
            let wanted = digits.map_or("nothing served before".to_owned(), |digits| {
                format!("no single hash begins with `{digits}`")
            });
            return Err(SwapError::NoVersion(wanted));
        };
        let result = self.attempt(|loader, trial| loader.load_version(&version, trial));
        self.settle(&version.file, SwapResult::RolledBack, result)
    }

    /// Loads and tries; switches if that went well.
    fn attempt(
        &mut self,
        load: impl FnOnce(&Loader, PolicyTrial<'_>) -> Result<Loaded, LoadError>,
    ) -> Result<(Loaded, Micros), SwapError> {
        let windows = self.recorded_windows().ok_or(SwapError::Stopped)?;
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &windows,
        };
        let mut loaded = load(&self.loader, trial).map_err(Box::new)?;
        let fresh = std::mem::replace(&mut loaded.policy, source::nobody());
        let record = PolicyRecord::of(&loaded.version, fresh.description());
        let observed = Observed::new(fresh, self.pool.name(), &self.registry);
        let (done, switched) = bounded(1);
        self.pool
            .send(Message::Install(Box::new(observed), record, done));
        let switch = switched
            .recv_timeout(self.patience)
            .map_err(|_| SwapError::Stopped)?;
        Ok((loaded, switch))
    }

    fn recorded_windows(&self) -> Option<Vec<Window>> {
        let (reply, windows) = bounded(1);
        self.pool.send(Message::Windows(TRIAL_WINDOWS, reply));
        windows.recv_timeout(self.patience).ok()
    }

    /// Logs, counts and keeps what came of an attempt.
    fn settle(
        &mut self,
        file: &Path,
        result: SwapResult,
        attempt: Result<(Loaded, Micros), SwapError>,
    ) -> Result<Swap, SwapError> {
        let pool = self.pool.name();
        let at = self.pool.clock().now();
        match attempt {
            Ok((loaded, switch)) => {
                let swap = Swap::done(result, at, &loaded, switch);
                tracing::info!(
                    pool,
                    file = %file.display(),
                    policy = swap.policy,
                    hash = swap.hash,
                    compile_us = swap.compile_us,
                    cached = swap.cached,
                    validate_us = swap.validate_us,
                    windows = swap.windows,
                    switch_us = swap.switch_us,
                    "policy {}", result.label(),
                );
                self.readiness.arrived(pool, Awaited::Policy);
                self.count(result);
                self.history.push(loaded.version.clone());
                let mut status = lock(&self.status);
                status.switched(swap.clone(), &loaded.version);
                status.history = self.history.iter().map(Version::from).collect();
                Ok(swap)
            }
            Err(error) => {
                tracing::error!(pool, file = %file.display(), %error, "policy refused: the old one serves on");
                self.count_fault(&error);
                self.count(SwapResult::Refused);
                lock(&self.status).tried(Swap::refused(at, file, &error.to_string()));
                Err(error)
            }
        }
    }

    fn removed(&mut self, file: &Path) {
        let pool = self.pool.name();
        tracing::error!(pool, file = %file.display(), "policy file removed: the fallback serves");
        self.pool.send(Message::RemovePolicy);
        self.count(SwapResult::Removed);
        let swap = Swap::removed(self.pool.clock().now(), file);
        lock(&self.status).removed(swap);
    }

    fn count(&self, result: SwapResult) {
        let labels = [("result", result.label())];
        self.registry
            .counter(names::POLICY_SWAPS, labels)
            .increment(1);
    }

    /// A window failed in the trial is a fault like any other, and seen where those are
    /// looked for.
    fn count_fault(&self, error: &SwapError) {
        let SwapError::Load(error) = error else {
            return;
        };
        let kind = match &error.cause {
            LoadCause::Window { fault, .. } => fault.kind,
            LoadCause::Plan { .. } => FaultKind::Refused,
            _ => return,
        };
        let labels = [("kind", kind.label())];
        self.registry
            .counter(names::POLICY_FAULTS, labels)
            .increment(1);
    }
}
