//! Turns a file into a policy that is ready to serve: read, compile, describe, configure, try.

mod code;
mod compile_log;
mod error;

pub use crate::allow::NotAllowed;
pub use error::{LoadCause, LoadError, LoadPhase};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::{Plan, check_window};
use switchyard_core::policy::Policy;
use switchyard_core::window::Window;
use wasmtime::component::Component;

use crate::allow::AllowList;
use crate::artifacts::Artifacts;
use crate::cache::{CodeCache, LoadedCode};
use crate::compiler::LoadStop;
use crate::engine::{CodeTier, PolicyEngine};
use crate::files::read_regular;
use crate::guest::{GuestParts, Recyclable};
use crate::history::PolicyVersion;
use crate::interface::ComponentInterface;
use crate::limits::{COMPONENT_BYTES_MAX, Limits};
use crate::registry;
use crate::settings;
use crate::usage::PolicyUsage;

/// Loads policies, all with the same engine, limits and seed. Clones share the code in memory, and a stop.
#[derive(Clone)]
pub struct Loader {
    engine: PolicyEngine,
    cache: Option<CodeCache>,
    loaded: Option<LoadedCode>,
    allow: Option<AllowList>,
    limits: Limits,
    seed: u64,
    shows_all_workers: bool,
    is_soon: bool,
    stop: LoadStop,
}

/// Settings of a loader.
#[derive(Clone, Debug, Default)]
pub struct LoaderOptions {
    /// Directory for compiled code; none: compile on each load.
    pub cache_dir: Option<PathBuf>,
    /// The limits on each policy.
    pub limits: Limits,
    /// Seed of each policy's random stream.
    pub seed: u64,
}

/// The trial that a policy has to pass before it may serve.
#[derive(Clone, Copy)]
pub struct PolicyTrial<'a> {
    /// The catalog that it is configured with.
    pub catalog: &'a Catalog,
    /// Recorded windows that it has to answer, each within its budget and with a plan that
    /// [`check_window`] accepts.
    pub windows: &'a [Window],
}

/// A policy that is ready to serve.
pub struct Loaded {
    /// Configured and fresh: the instance of the trial has been replaced.
    pub policy: Box<dyn Policy>,
    /// The entry for the history.
    pub version: PolicyVersion,
    /// The times of the load, for the log.
    pub report: LoadReport,
    /// The imports and exports of its component.
    pub interface: ComponentInterface,
    /// The resources that it uses, from its trial on.
    pub usage: Arc<PolicyUsage>,
}

/// The time of each step of a load, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Read the component and its settings.
    pub read_us: u64,
    /// Compile it, or find the compiled code.
    pub compile_us: u64,
    /// How the code was compiled.
    pub code: CodeTier,
    /// Whether the compiled code was in the cache.
    pub cached: bool,
    /// Make an instance and ask it to describe itself.
    pub describe_us: u64,
    /// Configure it.
    pub configure_us: u64,
    /// Try it on recorded windows.
    pub validate_us: u64,
    /// Number of recorded windows in the trial.
    pub windows: usize,
    /// Replace the instance of the trial by a fresh one, and configure that.
    pub renew_us: u64,
}

/// A component with its code.
struct Code {
    component: Component,
    tier: CodeTier,
    /// It was in memory or in the cache.
    cached: bool,
}

/// Times the steps of one load, and names the file in errors.
struct LoadSteps<'a> {
    file: &'a Path,
    began: Instant,
}

// === impl Loader ===

impl Loader {
    /// A loader. A cache that cannot be used is logged with each load.
    pub fn new(engine: PolicyEngine, options: LoaderOptions) -> Self {
        Self {
            engine,
            cache: options.cache_dir.map(CodeCache::new),
            loaded: None,
            allow: None,
            limits: options.limits,
            seed: options.seed,
            shows_all_workers: false,
            is_soon: false,
            stop: LoadStop::default(),
        }
    }

    /// Refuses components whose SHA-256 is not in this file, which is read for each load. Its lines are
    /// those of `sha256sum`.
    #[must_use]
    pub fn with_allow_list(self, file: Option<PathBuf>) -> Self {
        Self {
            allow: file.map(AllowList::new),
            ..self
        }
    }

    /// Keeps compiled components in memory too. They must be of this loader's engine.
    #[must_use]
    pub fn with_loaded_code(self, loaded: LoadedCode) -> Self {
        Self {
            loaded: Some(loaded),
            ..self
        }
    }

    /// Gives up the loads of this loader, such as at the end of the server.
    pub fn stop(&self) -> LoadStop {
        self.stop.clone()
    }

    /// The limits on each policy.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Loads `NAME.wasm` with the settings in `NAME.toml` next to it, if any. Takes as long as
    /// compiling: not for the serving path.
    ///
    /// # Errors
    /// The file, the phase and the reason.
    pub fn load(&self, file: &Path, trial: PolicyTrial<'_>) -> Result<Loaded, LoadError> {
        let mut report = LoadReport::default();
        let mut steps = LoadSteps::begin(file);
        let bytes =
            read_regular(file, COMPONENT_BYTES_MAX).map_err(|e| steps.fail(LoadPhase::Read, e))?;
        let settings = settings::read(&settings::file_of(file))
            .map_err(|e| steps.fail(LoadPhase::Settings, e))?;
        let version = PolicyVersion::new(file, bytes, settings);
        report.read_us = steps.lap_us();
        self.bring_up(version, trial, report)
    }

    /// Loads a version that served before, with its component and settings of then: a rollback.
    ///
    /// # Errors
    /// The file that the version came from, the phase and the reason.
    pub fn load_version(
        &self,
        version: &PolicyVersion,
        trial: PolicyTrial<'_>,
    ) -> Result<Loaded, LoadError> {
        self.bring_up(version.clone(), trial, LoadReport::default())
    }

    /// Policies of this loader are sent every worker in every window, whatever they ask for: to compare
    /// their plans.
    #[must_use]
    pub fn showing_all_workers(&self) -> Self {
        Self {
            shows_all_workers: true,
            ..self.clone()
        }
    }

    /// Policies of this loader are ready sooner: those that were not compiled before run in baseline code
    /// until they are [optimised](Self::optimize) and loaded again.
    #[must_use]
    pub fn loading_soon(&self) -> Self {
        Self {
            is_soon: true,
            ..self.clone()
        }
    }

    /// Compiles the optimised code of a version, for the loads that follow.
    ///
    /// # Errors
    /// The file that the version came from, and the reason.
    pub fn optimize(&self, version: &PolicyVersion) -> Result<(), LoadError> {
        let steps = LoadSteps::begin(&version.file);
        match self.code(version, false) {
            Ok(_) => Ok(()),
            Err(cause) => Err(steps.fail(LoadPhase::Compile, cause)),
        }
    }

    fn bring_up(
        &self,
        version: PolicyVersion,
        trial: PolicyTrial<'_>,
        mut report: LoadReport,
    ) -> Result<Loaded, LoadError> {
        let file = version.file.clone();
        let mut steps = LoadSteps::begin(&file);
        if let Some(allow) = &self.allow {
            allow
                .check(&file, &version.bytes)
                .map_err(|e| steps.fail(LoadPhase::Allow, e))?;
        }
        let mut soon = self.is_soon;
        loop {
            let code = self.code(&version, soon);
            let code = code.map_err(|e| steps.fail(LoadPhase::Compile, e))?;
            (report.code, report.cached) = (code.tier, code.cached);
            report.compile_us = steps.lap_us();
            let is_baseline = code.tier == CodeTier::Baseline;
            match self.prepare(code, version.clone(), trial, report.clone()) {
                // It may have been too slow.
                Err(error) if is_baseline => {
                    tracing::debug!(%error, "baseline code is not used");
                    soon = false;
                    steps.lap_us();
                }
                ready => return ready,
            }
        }
    }

    fn prepare(
        &self,
        code: Code,
        mut version: PolicyVersion,
        trial: PolicyTrial<'_>,
        mut report: LoadReport,
    ) -> Result<Loaded, LoadError> {
        let file = version.file.clone();
        let mut steps = LoadSteps::begin(&file);
        let component = &code.component;
        let mut policy = registry::bind(component, self.parts(&version))
            .map_err(|e| steps.fail(LoadPhase::Contract, e))?
            .map_err(|e| steps.fail(LoadPhase::Describe, e))?;
        version.label = policy.description().label();
        report.describe_us = steps.lap_us();

        policy
            .configure(trial.catalog)
            .map_err(|e| steps.fail(LoadPhase::Configure, e))?;
        report.configure_us = steps.lap_us();

        validate(policy.as_mut(), trial).map_err(|e| steps.fail(LoadPhase::Validate, e))?;
        (report.validate_us, report.windows) = (steps.lap_us(), trial.windows.len());

        policy
            .recycle()
            .map_err(|e| steps.fail(LoadPhase::Configure, e))?;
        report.renew_us = steps.lap_us();
        Ok(Loaded {
            interface: ComponentInterface::of(component),
            usage: Arc::clone(policy.usage()),
            policy: policy.into_policy(),
            version,
            report,
        })
    }

    fn parts(&self, version: &PolicyVersion) -> GuestParts {
        let name = version.file.file_stem().unwrap_or_default();
        GuestParts {
            engine: self.engine.clone(),
            limits: self.limits.clone(),
            artifacts: Artifacts::new(
                Artifacts::folder_of(version.place()),
                self.limits.artifact_bytes,
            ),
            settings: version.settings.clone(),
            seed: self.seed,
            shows_all_workers: self.shows_all_workers,
            file: name.to_string_lossy().into_owned(),
        }
    }
}

/// Each recorded window must be answered in time by a plan that could be applied.
fn validate(policy: &mut dyn Recyclable, trial: PolicyTrial<'_>) -> Result<(), LoadCause> {
    let mut plan = Plan::default();
    for window in trial.windows {
        plan.clear();
        policy
            .schedule(window, &mut plan)
            .map_err(|fault| LoadCause::Window {
                window: window.id,
                fault,
            })?;
        check_window(window, trial.catalog, &plan).map_err(|error| LoadCause::Plan {
            window: window.id,
            reason: error.to_string(),
        })?;
    }
    Ok(())
}

// === impl LoadSteps ===

impl<'a> LoadSteps<'a> {
    fn begin(file: &'a Path) -> Self {
        Self {
            file,
            began: Instant::now(),
        }
    }

    fn lap_us(&mut self) -> u64 {
        let lap = self.began.elapsed();
        self.began = Instant::now();
        u64::try_from(lap.as_micros()).unwrap_or(u64::MAX)
    }

    fn fail(&self, phase: LoadPhase, cause: impl Into<LoadCause>) -> LoadError {
        LoadError {
            file: self.file.to_owned(),
            phase,
            cause: cause.into(),
        }
    }
}
