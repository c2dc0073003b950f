//! The thread that loads policies, tries them, and has the driver switch.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::FaultKind;
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_policy::loader::{LoadCause, LoadError, LoadReport, Loaded, Loader, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{PolicyFileEvent, PolicyHistory, PolicyVersion};

use super::handle::{Request, SwapError, lock};
use super::report::{PoliciesStatus, Swap, SwapResult, Version};
use super::source;
use crate::driver::{Message, PoolHandle};
use crate::observed::Observed;
use crate::readiness::{Awaited, Readiness};
use crate::telemetry::{Registry, names};

/// Recorded windows that a policy is tried on.
const TRIAL_WINDOWS: usize = 16;

/// Longest wait for the driver's answer, without the windows before it. A driver that takes longer
/// has ended.
const DRIVER_PATIENCE: Duration = Duration::from_secs(10);

/// Window calls that may come before the driver looks at its inbox again: of the policy, of its last
/// good version, and of the windows that these two open.
const WINDOWS_BEFORE: u32 = 4;

/// The parts that a pool's policies are managed with.
pub struct PoliciesParts {
    /// The pool.
    pub pool: Arc<PoolHandle>,
    /// The component that is followed.
    pub file: PathBuf,
    /// Settings that override those in the file next to the component, field by field.
    pub settings: Option<toml::Table>,
    /// Loads components, under the pool's limits.
    pub loader: Loader,
    /// Longest time of one window call. The driver answers no message during a call.
    pub window_budget: Duration,
    /// Versions kept for rollback.
    pub history: usize,
    /// Told when the first policy serves.
    pub readiness: Arc<Readiness>,
    /// Where swaps are counted.
    pub registry: Registry,
}

/// The thread of a pool's policies.
pub(super) struct Manager {
    pool: Arc<PoolHandle>,
    catalog: Arc<Catalog>,
    file: PathBuf,
    settings: Option<toml::Table>,
    loader: Loader,
    /// Longest wait for the driver's answer.
    patience: Duration,
    history: PolicyHistory,
    readiness: Arc<Readiness>,
    registry: Registry,
    status: Arc<Mutex<PoliciesStatus>>,
}

/// A version that the driver has switched to.
struct Switched {
    version: PolicyVersion,
    report: LoadReport,
    /// Time that the driver took.
    switch: Micros,
}

// === impl Manager ===

impl Manager {
    pub(super) fn new(parts: PoliciesParts, status: Arc<Mutex<PoliciesStatus>>) -> Self {
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

    pub(super) fn run(mut self, inbox: &Receiver<Request>) {
        let file = self.file.clone();
        if let Err(error) = self.swap_file(&file) {
            let reason = format!("no policy: {error}");
            self.readiness
                .wait_for(self.pool.name(), Awaited::Policy, reason);
        }
        for request in inbox {
            // Failures are logged and counted where they happen. A reply is lost if the asking task
            // has ended.
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

    /// Loads a policy and tries it. If it passes, the driver switches to it.
    fn attempt(
        &mut self,
        load: impl FnOnce(&Loader, PolicyTrial<'_>) -> Result<Loaded, LoadError>,
    ) -> Result<Switched, SwapError> {
        let windows = self.recorded_windows().ok_or(SwapError::Stopped)?;
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &windows,
        };
        let Loaded {
            policy,
            version,
            report,
            ..
        } = load(&self.loader, trial).map_err(Box::new)?;
        let record = PolicyRecord::of(&version, policy.description());
        let observed = Observed::new(policy, self.pool.name(), &self.registry);
        let (done, switched) = bounded(1);
        self.pool
            .send(Message::Install(Box::new(observed), record, done));
        let switch = switched
            .recv_timeout(self.patience)
            .map_err(|_| SwapError::Stopped)?;
        Ok(Switched {
            version,
            report,
            switch,
        })
    }

    fn recorded_windows(&self) -> Option<Vec<Window>> {
        let (reply, windows) = bounded(1);
        self.pool.send(Message::Windows(TRIAL_WINDOWS, reply));
        windows.recv_timeout(self.patience).ok()
    }

    /// Logs, counts and keeps the result of an attempt.
    fn settle(
        &mut self,
        file: &Path,
        result: SwapResult,
        attempt: Result<Switched, SwapError>,
    ) -> Result<Swap, SwapError> {
        let pool = self.pool.name();
        let at = self.pool.clock().now();
        match attempt {
            Ok(switched) => {
                let Switched {
                    version,
                    report,
                    switch,
                } = switched;
                let swap = Swap::done(result, at, &version, &report, switch);
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
                self.history.push(version.clone());
                let mut status = lock(&self.status);
                status.switched(swap.clone(), &version);
                status.history = self.history.iter().map(Version::from).collect();
                Ok(swap)
            }
            Err(error) => {
                tracing::error!(pool, file = %file.display(), %error, "policy refused: the old one serves on");
                self.count_fault(file, &error);
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

    /// Counts a window that failed in the trial with the faults of windows that were served.
    fn count_fault(&self, file: &Path, error: &SwapError) {
        let SwapError::Load(error) = error else {
            return;
        };
        let kind = match &error.cause {
            LoadCause::Window { fault, .. } => fault.kind,
            LoadCause::Plan { .. } => FaultKind::Refused,
            _ => return,
        };
        let policy = file.file_stem().unwrap_or_default().to_string_lossy();
        let labels = [
            ("pool", self.pool.name()),
            ("policy", &*policy),
            ("kind", kind.label()),
        ];
        self.registry
            .counter(names::POLICY_FAULTS, labels)
            .increment(1);
    }
}
