//! A shadow: a candidate policy that gets a pool's windows as they are decided and returns plans
//! that are never carried out. It runs on its own thread, and the driver never waits for it: when it
//! lags, it misses windows, which are counted.
//!
//! Its component is watched like the pool's own: writing the file tries a new version. Its plans
//! are compared with the active ones as `switchyard replay` compares them.

mod slot;
mod status;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, bounded, never, select};
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::plan::Plan;
use switchyard_core::policy::Policy;
use switchyard_policy::files::WatchError;
use switchyard_policy::loader::{Loader, PolicyTrial};
use switchyard_policy::watcher::PolicyWatcher;
use switchyard_policy::{LoadStop, PolicyFileEvent};
use switchyard_threads::ServiceThread;
use thiserror::Error;

pub use self::slot::{MakeLoader, ShadowOwner, ShadowSlot};
pub use self::status::ShadowStatus;
use crate::driver::{Message, PoolHandle, Watch};
use crate::judge::{Difference, Tally};
use crate::observed::Observed;
use crate::policies::{source, watch_file};
use crate::telemetry::{Counter, Registry, names};

/// Decisions that may wait for the shadow. They are the scheduler's own, so that this bounds the
/// memory that a slow candidate can take.
const DECISIONS_MAX: usize = 256;

/// Names of the plan that was carried out and of the shadow's.
const SIDES: [&str; 2] = ["active", "shadow"];

/// File events that may wait.
const EVENTS_MAX: usize = 16;

/// The parts of a shadow.
pub struct ShadowParts {
    /// The pool whose windows it gets.
    pub pool: Arc<PoolHandle>,
    /// The component, which is watched.
    pub file: PathBuf,
    /// Settings that go before those in the component's `.toml` file.
    pub settings: toml::Table,
    /// Loads components, under the pool's limits.
    pub loader: Loader,
    /// Counts the windows.
    pub registry: Registry,
}

/// Runs a shadow until dropped.
pub struct Shadow {
    status: ShadowLog,
    stop: LoadStop,
    // Above the thread: it holds the only sender, so that the channel closes before the join.
    _watcher: PolicyWatcher,
    _thread: ServiceThread,
}

/// The findings of a shadow so far; clones show the same.
#[derive(Clone)]
pub struct ShadowLog(Arc<Mutex<ShadowStatus>>);

/// Why a shadow did not start.
#[derive(Debug, Error)]
pub enum ShadowError {
    /// The folder of its component cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The system refuses a thread.
    #[error("no thread for the shadow: {0}")]
    Thread(#[from] io::Error),
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

/// The version that is asked, and its findings.
struct Asked {
    candidate: Observed,
    /// Decided since it was loaded, so that they show the fields that it wants.
    decided: Receiver<Arc<Decision>>,
    tally: Tally,
    last_window: Option<u64>,
    missed: u64,
}

/// Windows by finding.
struct Meters {
    identical: Counter,
    different: Counter,
    failed: Counter,
    missed: Counter,
}

// === impl Shadow ===

impl Shadow {
    /// Starts the thread, which loads the component.
    ///
    /// # Errors
    /// The folder cannot be watched, or the system refuses a thread.
    pub fn start(parts: ShadowParts) -> Result<Self, ShadowError> {
        let status = ShadowLog::new(&parts.file);
        let stop = parts.loader.stop();
        let (events, changes) = bounded(EVENTS_MAX);
        let watcher = watch_file(&parts.file, move |event| {
            // An error means that the shadow has ended.
            let _ = events.send(event);
        })?;
        let name = format!("{}-shadow", parts.pool.name());
        let shadowing = Shadowing::new(parts, status.clone());
        let thread = ServiceThread::spawn(name, move || shadowing.run(&changes))?;
        Ok(Self {
            status,
            stop,
            _watcher: watcher,
            _thread: thread,
        })
    }

    /// Its findings.
    pub fn log(&self) -> &ShadowLog {
        &self.status
    }
}

impl Drop for Shadow {
    /// Gives up a load under way, for which the watcher and the thread would wait.
    fn drop(&mut self) {
        self.stop.stop();
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

    fn run(mut self, changes: &Receiver<PolicyFileEvent>) {
        self.load();
        let nothing = never();
        loop {
            let asked = self.asked.as_ref();
            let decided = asked.map_or(&nothing, |asked| &asked.decided).clone();
            select! {
                recv(changes) -> change => match change {
                    Ok(PolicyFileEvent::Changed(_)) => self.load(),
                    Ok(PolicyFileEvent::Removed(_)) => self.remove(),
                    // The watcher was dropped.
                    Err(_) => break,
                },
                recv(decided) -> decision => match decision {
                    Ok(decision) => self.window(&decision),
                    // The driver has ended; the watcher is dropped soon.
                    Err(_) => self.asked = None,
                },
            }
        }
        self.pool.send(Message::Watch(None));
    }

    /// A version that fails to load leaves the previous one in use.
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
        self.status.lock().loaded(label.clone(), hash.to_string());
        tracing::info!(pool, policy = label, %hash, "shadow loaded");
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
            return; // Only the fallback was asked.
        }
        let (policy, catalog) = (&mut asked.candidate, &self.catalog);
        // Windows show the fields that it wants since it was loaded.
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
