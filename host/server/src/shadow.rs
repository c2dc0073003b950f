//! A shadow: a candidate that gets a pool's windows as they are decided and is asked what it
//! would have done. Nothing of it is done. It runs on a thread of its own, which the driver never
//! waits for: when it lags, windows pass it by and are counted as missed.
//!
//! Its component is followed like the pool's own, so that a new version is tried by writing the
//! file. What it would do is compared with what was done as `switchyard replay` compares it.

mod status;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use metrics::Counter;
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::plan::Plan;
use switchyard_core::policy::Policy;
use switchyard_policy::PolicyFileEvent;
use switchyard_policy::files::WatchError;
use switchyard_policy::loader::{Loader, PolicyTrial};
use switchyard_policy::watcher::PolicyWatcher;
use thiserror::Error;

pub use self::status::ShadowStatus;
use crate::driver::{Message, PoolHandle, Watch};
use crate::judge::{Difference, Tally};
use crate::observed::Observed;
use crate::policies::{source, watch_file};
use crate::telemetry::{Registry, names};

/// Decisions that may wait for the shadow. They are the scheduler's own, so that this bounds the
/// memory that a slow candidate can take.
const DECISIONS_MAX: usize = 256;

/// What the plan that was carried out and the other one are called.
const SIDES: [&str; 2] = ["active", "shadow"];

/// File events that may wait.
const EVENTS_MAX: usize = 16;

/// What a shadow is started with.
pub struct ShadowParts {
    /// The pool whose windows it gets.
    pub pool: Arc<PoolHandle>,
    /// The component, which is followed.
    pub file: PathBuf,
    /// Settings that go before those in the file beside it.
    pub settings: toml::Table,
    /// Loads components, under the pool's limits.
    pub loader: Loader,
    /// Where windows are counted.
    pub registry: Registry,
}

/// Runs a shadow until dropped.
pub struct Shadow {
    status: ShadowLog,
    // Dropped first: no file event comes after that.
    watcher: Option<PolicyWatcher>,
    events: Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

/// What a shadow has found so far; clones show the same.
#[derive(Clone)]
pub struct ShadowLog(Arc<Mutex<ShadowStatus>>);

/// Why a shadow cannot be started.
#[derive(Debug, Error)]
pub enum ShadowError {
    /// The folder of its component cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The system gives no thread.
    #[error("no thread for the shadow: {0}")]
    Thread(#[from] io::Error),
}

enum Request {
    File(PolicyFileEvent),
    Stop,
}

/// The thread.
struct Shadowing {
    pool: Arc<PoolHandle>,
    catalog: Arc<Catalog>,
    file: PathBuf,
    settings: toml::Table,
    loader: Loader,
    registry: Registry,
    asked: Option<Asked>,
    plan: Plan,
    meters: Meters,
    status: ShadowLog,
}

/// The version that is asked, and what it said.
struct Asked {
    candidate: Observed,
    /// Decided since it was loaded, so that they show what it wants.
    decided: Receiver<Arc<Decision>>,
    tally: Tally,
    last_window: Option<u64>,
    missed: u64,
}

/// Windows by what became of them.
struct Meters {
    identical: Counter,
    different: Counter,
    failed: Counter,
    missed: Counter,
}

// === impl Shadow ===

impl Shadow {
    /// Starts the thread, which loads the component that is there.
    ///
    /// # Errors
    /// The folder cannot be watched, or the system gives no thread.
    pub fn start(parts: ShadowParts) -> Result<Self, ShadowError> {
        let status = ShadowLog::new(&parts.file);
        let (events, requests) = bounded(EVENTS_MAX);
        let file_events = events.clone();
        let watcher = watch_file(&parts.file, move |event| {
            // An error means that the shadow has ended.
            let _ = file_events.send(Request::File(event));
        })?;
        let name = format!("{}-shadow", parts.pool.name());
        let shadowing = Shadowing::new(parts, status.clone());
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || shadowing.run(&requests))?;
        Ok(Self {
            status,
            watcher: Some(watcher),
            events,
            thread: Some(thread),
        })
    }

    /// What it finds.
    pub fn log(&self) -> &ShadowLog {
        &self.status
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.watcher = None;
        // An error means that the thread has ended.
        let _ = self.events.send(Request::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the shadow's thread panicked");
        }
    }
}

// === impl ShadowLog ===

impl ShadowLog {
    fn new(file: &Path) -> Self {
        Self(Arc::new(Mutex::new(ShadowStatus::new(file))))
    }

    /// As it is now.
    pub fn status(&self) -> ShadowStatus {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ShadowStatus> {
        // The status is whole at every point where a panic could strike.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Shadowing ===

impl Shadowing {
    fn new(parts: ShadowParts, status: ShadowLog) -> Self {
        Self {
            catalog: Arc::clone(parts.pool.catalog()),
            meters: Meters::new(parts.pool.name(), &parts.registry),
            pool: parts.pool,
            file: parts.file,
            settings: parts.settings,
            loader: parts.loader,
            registry: parts.registry,
            asked: None,
            plan: Plan::default(),
            status,
        }
    }

    fn run(mut self, requests: &Receiver<Request>) {
        self.load();
        let nothing = never();
        loop {
            let asked = self.asked.as_ref();
            let decided = asked.map_or(&nothing, |asked| &asked.decided).clone();
            select! {
                recv(requests) -> request => match request {
                    Ok(Request::File(PolicyFileEvent::Changed(_))) => self.load(),
                    Ok(Request::File(PolicyFileEvent::Removed(_))) => self.remove(),
                    Ok(Request::Stop) | Err(_) => break,
                },
                recv(decided) -> decision => match decision {
                    Ok(decision) => self.window(&decision),
                    // The driver has ended, and this thread will hear of it.
                    Err(_) => self.asked = None,
                },
            }
        }
        self.pool.send(Message::Watch(None));
    }

    /// A version that cannot be loaded leaves the one before in its place.
    fn load(&mut self) {
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &[],
        };
        let version = source::version(&self.file, self.settings.clone());
        let loaded = version.and_then(|version| self.loader.load_version(&version, trial));
        let pool = self.pool.name();
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                let file = self.file.display();
                tracing::error!(pool, %file, %error, "the shadow's policy is refused");
                self.status.lock().error = Some(error.to_string());
                return;
            }
        };
        let (label, hash) = (loaded.policy.description().label(), loaded.version.hash);
        tracing::info!(pool, policy = label, %hash, "shadow loaded");
        self.status.lock().loaded(label, hash.to_string());
        let (decisions, decided) = bounded(DECISIONS_MAX);
        self.pool.send(Message::Watch(Some(Watch {
            shows: loaded.policy.description().wants,
            decisions,
            dropped: self.meters.missed.clone(),
        })));
        self.asked = Some(Asked {
            candidate: Observed::shadow(loaded.policy, pool, &self.registry),
            decided,
            tally: Tally::default(),
            last_window: None,
            missed: 0,
        });
    }

    fn remove(&mut self) {
        tracing::warn!(pool = self.pool.name(), "the shadow's file is gone");
        self.asked = None;
        self.pool.send(Message::Watch(None));
        self.status.lock().removed();
    }

    fn window(&mut self, decision: &Decision) {
        let Some(asked) = &mut self.asked else { return };
        let id = decision.window.id;
        let before = asked.last_window.replace(id);
        asked.missed += before.map_or(0, |before| id.saturating_sub(before + 1));
        if decision.rescue {
            return; // Nobody was asked but the fallback.
        }
        let (policy, catalog) = (&mut asked.candidate, &self.catalog);
        // What it wants, windows show since it was loaded.
        let residents = policy.description().wants.residents;
        let tally = &mut asked.tally;
        let found = tally.ask(policy, catalog, decision, residents, &mut self.plan);
        self.meters.count(found.as_ref());
        let shown = found.filter(|found| !found.is_wake_only());
        let shown = shown.map(|found| found.to_json(catalog, SIDES));
        self.status.lock().found(tally, asked.missed, shown);
    }
}

// === impl Meters ===

impl Meters {
    fn new(pool: &str, registry: &Registry) -> Self {
        let counter =
            |result| registry.counter(names::SHADOW_WINDOWS, [("pool", pool), ("result", result)]);
        Self {
            identical: counter("identical"),
            different: counter("different"),
            failed: counter("failed"),
            missed: counter("missed"),
        }
    }

    fn count(&self, found: Option<&Difference>) {
        let counter = match found {
            None => &self.identical,
            Some(found) if found.failure.is_some() => &self.failed,
            Some(_) => &self.different,
        };
        counter.increment(1);
    }
}
