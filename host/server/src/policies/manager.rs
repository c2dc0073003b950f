//! The thread that loads policies, tries them, and has the driver switch.

mod canaries;
mod meters;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use switchyard_core::canary::{Verdict, Why};
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{FALLBACK_NAME, FaultKind, Policy};
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_policy::loader::{LoadCause, LoadError, LoadReport, Loaded, Loader, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{PolicyFileEvent, PolicyHistory, PolicyVersion};
use tokio::sync::watch;

use self::meters::ManagerMeters;
use super::handle::{Request, SwapError, SwapOrder, SwapTarget, lock};
use super::kept::KeptVersions;
use super::nearest::nearest;
use super::report::{PoliciesStatus, Swap, SwapResult, Version};
use super::retry::Retry;
use super::running_canary::RunningCanary;
use super::shared::SharedPolicy;
use super::source;
use crate::driver::{Message, PoolHandle};
use crate::observed::Observed;
use crate::readiness::Awaited;
use crate::telemetry::Registry;

/// Recorded windows that a policy is tried on.
const TRIAL_WINDOWS: usize = 16;

/// Longest wait for the driver's answer, without the windows before it. A driver that takes longer
/// has ended.
const DRIVER_PATIENCE: Duration = Duration::from_secs(10);

/// Window calls that may come before the driver looks at its inbox again: of the policy, of its last
/// good version, and of the windows that these two open.
const WINDOWS_BEFORE: u32 = 4;

/// Digits of a hash that tell versions apart.
const SHOWN_DIGITS: usize = 12;

/// The parts that a pool's policies are managed with.
pub struct PoliciesParts {
    /// The pool.
    pub pool: Arc<PoolHandle>,
    /// The component that is followed.
    pub file: PathBuf,
    /// Folder of the policies that come with the program: orders name them too.
    pub bundled: Option<PathBuf>,
    /// Settings that override those in the file next to the component, field by field.
    pub settings: Option<toml::Table>,
    /// Loads components, under the pool's limits.
    pub loader: Loader,
    /// Longest time of one window call. The driver answers no message during a call.
    pub window_budget: Duration,
    /// Versions kept for rollback.
    pub history: usize,
    /// Folder in which they are kept over restarts.
    pub versions: PathBuf,
    /// Where swaps are counted.
    pub registry: Registry,
    /// Where other schedulers have the policy too; none: only here.
    pub shared: Option<SharedPolicy>,
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
    kept: KeptVersions,
    registry: Registry,
    status: Arc<Mutex<PoliciesStatus>>,
    active: watch::Sender<Option<String>>,
    retry: Option<Retry>,
    canary: Option<RunningCanary>,
    meters: ManagerMeters,
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
    pub(super) fn new(
        parts: PoliciesParts,
        status: Arc<Mutex<PoliciesStatus>>,
        active: watch::Sender<Option<String>>,
    ) -> Self {
        let kept = KeptVersions::open(parts.versions, parts.history);
        let mut history = PolicyHistory::new(parts.history);
        kept.versions()
            .into_iter()
            .for_each(|version| history.push(version));
        let meters = ManagerMeters::new(&parts.registry, parts.pool.name(), &parts.file);
        Self {
            kept,
            meters,
            catalog: Arc::clone(parts.pool.catalog()),
            pool: parts.pool,
            file: parts.file,
            settings: parts.settings,
            loader: parts.loader,
            patience: DRIVER_PATIENCE + parts.window_budget * WINDOWS_BEFORE,
            history,
            registry: parts.registry,
            status,
            active,
            retry: None,
            canary: None,
        }
    }

    pub(super) fn run(mut self, inbox: &Receiver<Request>) {
        self.load_first();
        loop {
            let retry = self.retry.as_ref().map(|retry| retry.at);
            let look = self.canary.as_ref().map(|canary| canary.look_at);
            let received = match retry.into_iter().chain(look).min() {
                Some(next) => inbox.recv_deadline(next),
                None => inbox.recv().map_err(RecvTimeoutError::from),
            };
            // Failures are logged and counted where they happen. A reply is lost if the asking task
            // has ended.
            match received {
                Ok(Request::File(PolicyFileEvent::Changed(file))) => {
                    if !self.has_written(&file) {
                        drop(self.swap_file(&file, ""));
                    }
                }
                Ok(Request::File(PolicyFileEvent::Removed(file))) => self.removed(&file),
                Ok(Request::Order(order, reply)) => drop(reply.send(self.carry_out(&order))),
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if self.retry.as_ref().is_some_and(|retry| retry.at <= now) {
                self.try_again();
            }
            if self
                .canary
                .as_ref()
                .is_some_and(|canary| canary.look_at <= now)
            {
                self.look_at_canary();
            }
        }
    }

    /// The configuration names the host's own policy, which has no file.
    fn is_fallback_wanted(&self, error: &SwapError) -> bool {
        let is_named = self.file.file_stem() == Some(FALLBACK_NAME.as_ref());
        is_named && matches!(error, SwapError::Load(error) if error.is_not_found())
    }

    /// Loads the policy that is there at the start. The pool is ready even if it is refused: the
    /// fallback serves, as it would if the file had been refused while the server ran. A file that
    /// does not exist may be a mistake of the configuration, so the pool waits for it.
    fn load_first(&mut self) {
        self.shows(None);
        let file = self.file.clone();
        let Err(error) = self.swap_file(&file, "") else {
            return;
        };
        let pool = self.pool.name();
        if self.is_fallback_wanted(&error) {
            tracing::info!(pool, "the fallback serves, as configured");
            self.shows(Some((FALLBACK_NAME, "")));
            self.pool.readiness().arrived(Awaited::Policy);
            return;
        }
        let SwapError::Load(error) = error else {
            return;
        };
        if error.is_not_found() {
            let suggestion = match nearest(&file) {
                Some(name) => format!("; did you mean `{name}`?"),
                None => String::new(),
            };
            let reason = format!("no policy: {error}{suggestion}");
            tracing::error!(pool, "not ready: {reason}");
            self.pool.readiness().wait_for(Awaited::Policy, reason);
        } else {
            self.pool.readiness().arrived(Awaited::Policy);
        }
    }

    /// Switches to the component in a file, for the operator `by` if one ordered it.
    fn swap_file(&mut self, file: &Path, by: &str) -> Result<Swap, SwapError> {
        let result = self.load_file(file);
        self.retry = retry_after(None, file, &result);
        self.settle(file, SwapResult::Switched, (by, ""), result)
    }

    /// Tries a file again that could not be read for now. The log tells of a failure only if it has
    /// another reason than the last one.
    fn try_again(&mut self) {
        let Some(before) = self.retry.take() else {
            return;
        };
        let result = self.load_file(&before.file);
        self.retry = retry_after(Some(&before), &before.file, &result);
        let is_told = (self.retry.as_ref()).is_some_and(|retry| retry.error == before.error);
        if !is_told {
            // Logged and counted there.
            let _ = self.settle(&before.file, SwapResult::Switched, ("", ""), result);
        }
    }

    fn load_file(&mut self, file: &Path) -> Result<Switched, SwapError> {
        let settings = self.settings.clone();
        self.attempt(|loader, trial| load(loader, file, settings, trial))
    }

    /// Whether the watcher tells of files that an order has just written.
    fn has_written(&self, file: &Path) -> bool {
        let version = source::version(file, self.settings.clone().unwrap_or_default()).ok();
        self.kept.has_written(version.map(|it| it.hash), file)
    }

    /// Switches for an operator, and makes the version's files those of the pool's policy.
    fn carry_out(&mut self, order: &SwapOrder) -> Result<Swap, SwapError> {
        let before = lock(&self.status).active.clone();
        let before = before.map_or("none".to_owned(), |version| version.hash);
        if let Some(expected) = &order.expect
            && (expected.is_empty() || !before.starts_with(expected.as_str()))
        {
            // The order may have been sent twice.
            let done = lock(&self.status).swaps.back().cloned();
            return match done.filter(|swap| before.starts_with(&swap.hash)) {
                Some(swap) if self.is_at(&order.to, &before) => Ok(swap),
                _ => Err(SwapError::Conflict {
                    active: before.chars().take(SHOWN_DIGITS).collect(),
                    expected: expected.clone(),
                }),
            };
        }
        let by = order.by.as_str();
        let swap = match &order.to {
            SwapTarget::File(file) => self.swap_file(file, by),
            SwapTarget::Previous if self.canary.is_some() => {
                return self.end_canary(Verdict::RollBack(Why::Ordered), by);
            }
            SwapTarget::Previous => self.roll_back(None, by),
            SwapTarget::Version(digits) => self.roll_back(Some(digits), by),
            SwapTarget::Canary(file, settings) => return self.begin_canary(file, *settings, by),
            SwapTarget::Candidate => return self.end_canary(Verdict::Promote(Why::Ordered), by),
        }?;
        if order.to != SwapTarget::File(self.file.clone()) {
            self.write_latest()?;
        }
        Ok(swap)
    }

    /// Makes the files of the version that serves those of the pool's policy.
    fn write_latest(&mut self) -> Result<(), SwapError> {
        let Some(version) = self.history.iter().next() else {
            return Ok(());
        };
        let written = self.kept.write(version, &self.file);
        written.inspect_err(|error| {
            tracing::error!(%error, policy = version.label, "serves, and a restart loads the old one");
        })?;
        Ok(())
    }

    /// Whether the version with this hash is the one that an order wants.
    fn is_at(&self, target: &SwapTarget, active: &str) -> bool {
        match target {
            SwapTarget::File(file) => {
                let version = source::version(file, self.settings.clone().unwrap_or_default());
                version.is_ok_and(|version| version.hash.to_hex() == active)
            }
            SwapTarget::Previous | SwapTarget::Canary(..) | SwapTarget::Candidate => false,
            SwapTarget::Version(digits) => {
                !digits.is_empty() && active.starts_with(digits.as_str())
            }
        }
    }

    /// Switches to a version that served before, for the operator `by`.
    fn roll_back(&mut self, digits: Option<&str>, by: &str) -> Result<Swap, SwapError> {
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
        self.settle(&version.file, SwapResult::RolledBack, (by, ""), result)
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
        } = load(&self.loader, trial).map_err(load_error)?;
        let record = PolicyRecord::of(&version, policy.description());
        let observed = Observed::new(policy, self.pool.name(), &self.registry);
        let switch = self.install(Box::new(observed), record)?;
        Ok(Switched {
            version,
            report,
            switch,
        })
    }

    /// Has the driver switch to a policy; the time that it took.
    fn install(&self, policy: Box<dyn Policy>, record: PolicyRecord) -> Result<Micros, SwapError> {
        let (done, switched) = bounded(1);
        self.pool.send(Message::Install(policy, record, done));
        let switch = switched.recv_timeout(self.patience);
        switch.map_err(|_| SwapError::Stopped)
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
        (by, reason): (&str, &str),
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
                let version = self.kept.keep(version);
                let swap = Swap {
                    by: by.to_owned(),
                    reason: reason.to_owned(),
                    file: file.display().to_string(),
                    ..Swap::done(result, at, &version, &report, switch)
                };
                tracing::info!(
                    pool,
                    by,
                    file = %file.display(),
                    policy = swap.policy,
                    hash = swap.hash,
                    compile_us = swap.compile_us,
                    cached = swap.cached,
                    validate_us = swap.validate_us,
                    windows = swap.windows,
                    switch_us = swap.switch_us,
                    reason,
                    "policy {}", result.label(),
                );
                self.superseded();
                let active = (version.label.as_str(), &*version.hash.to_string());
                self.shows(Some(active));
                self.meters.installed();
                self.pool.readiness().arrived(Awaited::Policy);
                self.meters.count(result);
                self.history.push(version.clone());
                let mut status = lock(&self.status);
                status.switched(swap.clone(), &version);
                status.history = self.history.iter().map(Version::from).collect();
                drop(status);
                self.active.send_replace(Some(version.hash.to_hex()));
                Ok(swap)
            }
            Err(error) => self.refused(file, by, error),
        }
    }

    /// Logs, counts and keeps the failure of an attempt.
    fn refused(&mut self, file: &Path, by: &str, error: SwapError) -> Result<Swap, SwapError> {
        if matches!(error, SwapError::Stopped) {
            return Err(error);
        }
        let (pool, at) = (self.pool.name(), self.pool.clock().now());
        let file_shown = file.display();
        match lock(&self.status).active {
            Some(_) => {
                tracing::error!(pool, file = %file_shown, %error, "policy refused: the old one serves on");
            }
            None if self.is_fallback_wanted(&error) => {}
            None => {
                tracing::error!(pool, file = %file_shown, %error, "policy refused: the fallback serves");
            }
        }
        self.count_fault(file, &error);
        self.meters.count(SwapResult::Refused);
        lock(&self.status).tried(Swap {
            by: by.to_owned(),
            ..Swap::refused(at, file, &error.to_string())
        });
        Err(error)
    }

    fn removed(&mut self, file: &Path) {
        let pool = self.pool.name();
        tracing::error!(pool, file = %file.display(), "policy file removed: the fallback serves");
        self.pool.send(Message::RemovePolicy);
        self.superseded();
        self.shows(None);
        self.meters.count(SwapResult::Removed);
        let swap = Swap::removed(self.pool.clock().now(), file);
        lock(&self.status).removed(swap);
        self.active.send_replace(None);
    }

    /// The policy that is installed, by label and hash; none: only the fallback serves.
    fn shows(&mut self, active: Option<(&str, &str)>) {
        self.meters.shows(&self.registry, self.pool.name(), active);
    }

    /// Counts a window that failed in the trial with the faults of windows that were served.
    fn count_fault(&mut self, file: &Path, error: &SwapError) {
        let SwapError::Load(error) = error else {
            return;
        };
        let kind = match &error.cause {
            LoadCause::Window { fault, .. } => fault.kind,
            LoadCause::Plan { .. } => FaultKind::Refused,
            _ => return,
        };
        let policy = file.file_stem().unwrap_or_default().to_string_lossy();
        let (registry, pool) = (&self.registry, self.pool.name());
        self.meters.tried(registry, pool, &policy, kind);
    }
}

/// Loads a component, with settings that go before its own.
fn load(
    loader: &Loader,
    file: &Path,
    over: Option<toml::Table>,
    trial: PolicyTrial<'_>,
) -> Result<Loaded, LoadError> {
    match over {
        None => loader.load(file, trial),
        Some(over) => loader.load_version(&source::version(file, over)?, trial),
    }
}

fn load_error(error: LoadError) -> SwapError {
    match error.cause {
        LoadCause::Stopped => SwapError::Stopped,
        _ => SwapError::Load(Box::new(error)),
    }
}

/// When to try a file again, if its failure may pass.
fn retry_after(
    before: Option<&Retry>,
    file: &Path,
    result: &Result<Switched, SwapError>,
) -> Option<Retry> {
    match result {
        Err(SwapError::Load(error)) if error.may_pass() => Some(Retry::after(
            before,
            file,
            error.to_string(),
            Instant::now(),
        )),
        _ => None,
    }
}
