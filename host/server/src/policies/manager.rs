//! The thread that loads policies, tries them, and has the driver switch.

mod canaries;
mod meters;
mod settling;
mod tiers;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use switchyard_core::canary::{Verdict, Why};
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{FALLBACK_NAME, Policy};
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
use super::optimizing::Optimizing;
use super::parts::PoliciesParts;
use super::report::{PoliciesStatus, Swap, SwapResult};
use super::retry::Retry;
use super::running_canary::RunningCanary;
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
    optimizing: Option<Optimizing>,
    meters: ManagerMeters,
}

/// A version that may serve.
struct Ready {
    policy: Box<dyn Policy>,
    record: PolicyRecord,
    version: PolicyVersion,
    report: LoadReport,
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
            optimizing: None,
        }
    }

    pub(super) fn run(mut self, inbox: &Receiver<Request>) {
        self.load_first();
        loop {
            let retry = self.retry.as_ref().map(|retry| retry.at);
            let look = self.canary.as_ref().map(|canary| canary.look_at);
            let next = retry.into_iter().chain(look).min().map_or_else(never, at);
            let compiling = self.optimizing.as_ref();
            let optimized = compiling.map_or_else(never, |compiling| compiling.ended.clone());
            select! {
                recv(inbox) -> request => match request {
                    Ok(Request::Stop) | Err(_) => return,
                    Ok(request) => self.receive(request),
                },
                recv(optimized) -> ended => self.optimized(ended.ok()),
                recv(next) -> _ => {}
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

    /// Failures are logged and counted where they happen. A reply is lost if the asking task has ended.
    fn receive(&mut self, request: Request) {
        match request {
            Request::File(PolicyFileEvent::Changed(file)) => {
                if !self.has_written(&file) {
                    drop(self.swap_file(&file, ""));
                }
            }
            Request::File(PolicyFileEvent::Removed(file)) => self.removed(&file),
            Request::Order(order, reply) => drop(reply.send(self.carry_out(&order))),
            Request::Stop => {}
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
            SwapTarget::Compared(file, compared) => {
                let version = self.compared(file, compared)?;
                let result = self.attempt(|loader, trial| loader.load_version(&version, trial));
                self.settle(file, SwapResult::Switched, (by, ""), result)
            }
            SwapTarget::Previous if self.canary.is_some() => {
                return self.end_canary(Verdict::RollBack(Why::Ordered), by);
            }
            SwapTarget::Previous => self.roll_back(None, by),
            SwapTarget::Version(digits) => self.roll_back(Some(digits), by),
            SwapTarget::Canary(file, settings) => return self.begin_canary(file, *settings, by),
            SwapTarget::Candidate => return self.end_canary(Verdict::Promote(Why::Ordered), by),
        }?;
        if order.to.file() != Some(&*self.file) {
            self.write_latest()?;
        }
        Ok(swap)
    }

    /// The version of this hash, which a shadow asks.
    fn compared(&self, file: &Path, compared: &str) -> Result<PolicyVersion, SwapError> {
        let version = source::version(file, self.settings.clone().unwrap_or_default());
        let version = version.map_err(Box::new)?;
        let found = version.hash.to_string();
        match found == compared {
            true => Ok(version),
            false => Err(SwapError::NotCompared {
                file: file.to_owned(),
                compared: compared.to_owned(),
                found,
            }),
        }
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
            SwapTarget::File(file) | SwapTarget::Compared(file, _) => {
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

    /// Loads a policy and tries it. If it passes, the driver switches to it. It may be in baseline code.
    fn attempt(
        &mut self,
        load: impl FnOnce(&Loader, PolicyTrial<'_>) -> Result<Loaded, LoadError>,
    ) -> Result<Switched, SwapError> {
        let loader = self.loader.loading_soon();
        let ready = self.ready(|trial| load(&loader, trial))?;
        let switch = self.install(ready.policy, ready.record)?;
        Ok(Switched {
            version: ready.version,
            report: ready.report,
            switch,
        })
    }

    /// Loads a policy and tries it.
    fn ready(
        &self,
        load: impl FnOnce(PolicyTrial<'_>) -> Result<Loaded, LoadError>,
    ) -> Result<Ready, SwapError> {
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
        } = load(trial).map_err(load_error)?;
        let record = PolicyRecord::of(&version, policy.description());
        let observed = Observed::new(policy, self.pool.name(), &self.registry);
        Ok(Ready {
            policy: Box::new(observed),
            record,
            version,
            report,
        })
    }

    /// Has the driver switch to a policy; the time that it took.
    fn install(&self, policy: Box<dyn Policy>, record: PolicyRecord) -> Result<Micros, SwapError> {
        self.send(|done| Message::Install(policy, record, done))
    }

    fn send(&self, message: impl FnOnce(Sender<Micros>) -> Message) -> Result<Micros, SwapError> {
        let (done, switched) = bounded(1);
        self.pool.send(message(done));
        let switch = switched.recv_timeout(self.patience);
        switch.map_err(|_| SwapError::Stopped)
    }

    fn recorded_windows(&self) -> Option<Vec<Window>> {
        let (reply, windows) = bounded(1);
        self.pool.send(Message::Windows(TRIAL_WINDOWS, reply));
        windows.recv_timeout(self.patience).ok()
    }

    /// The policy that is installed, by label and hash; none: only the fallback serves.
    fn shows(&mut self, active: Option<(&str, &str)>) {
        self.meters.shows(&self.registry, self.pool.name(), active);
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
