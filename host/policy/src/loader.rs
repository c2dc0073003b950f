//! From a file to a policy that is ready to serve: read, compile, describe, configure, try.

mod error;

pub use error::{LoadCause, LoadError, Phase};

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::Policy;
use switchyard_core::window::Window;
use wasmtime::component::Component;

use crate::artifacts::Artifacts;
use crate::cache::{CacheError, CodeCache};
use crate::contract::{self, Recyclable};
use crate::engine::PolicyEngine;
use crate::guest::Setting;
use crate::history::{ContentHash, PolicyVersion};
use crate::interface::Interface;
use crate::limits::Limits;
use crate::settings;
use crate::usage::Usage;
use crate::whole::{self, Shape};

/// Loads policies, all with the same engine, limits and seed.
pub struct Loader {
    engine: PolicyEngine,
    cache: Option<CodeCache>,
    limits: Limits,
    seed: u64,
}

/// What a loader is made with.
#[derive(Clone, Debug, Default)]
pub struct LoaderOptions {
    /// Where compiled code is kept; none: compile each time.
    pub cache_dir: Option<PathBuf>,
    /// What each policy may take.
    pub limits: Limits,
    /// Seed of each policy's random stream.
    pub seed: u64,
}

/// What a policy has to pass before it may serve.
pub struct Trial<'a> {
    /// What it is configured with.
    pub catalog: &'a Catalog,
    /// Recorded windows that it has to answer, each within its budget.
    pub windows: &'a [Window],
    /// Whether an answer is a plan that can be applied; if not, why not.
    pub check: &'a mut dyn FnMut(&Window, &Plan) -> Result<(), String>,
}

/// A policy that is ready to serve.
pub struct Loaded {
    /// Configured, fresh: what it did in its trial is forgotten.
    pub policy: Box<dyn Policy>,
    /// For the history.
    pub version: PolicyVersion,
    /// For the log.
    pub report: LoadReport,
    /// What it asks of its host.
    pub interface: Interface,
    /// What it takes, from its trial on.
    pub usage: Arc<Usage>,
}

/// How long each step took, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Read the component and its settings.
    pub read_us: u64,
    /// Compile it, or find it compiled.
    pub compile_us: u64,
    /// Compiled code was found in the cache.
    pub cached: bool,
    /// Make an instance and describe it.
    pub describe_us: u64,
    /// Configure it.
    pub configure_us: u64,
    /// Try it on the recorded windows.
    pub validate_us: u64,
    /// Recorded windows that it was tried on.
    pub windows: usize,
    /// Replace the instance that was tried by a fresh one, configured again.
    pub renew_us: u64,
}

/// Times the steps of one load and names the file in its errors.
struct Steps<'a> {
    file: &'a Path,
    began: Instant,
}

// === impl Loader ===

impl Loader {
    /// A loader.
    ///
    /// # Errors
    /// The cache directory cannot be used.
    pub fn new(engine: PolicyEngine, options: LoaderOptions) -> Result<Self, CacheError> {
        Ok(Self {
            engine,
            cache: options.cache_dir.map(CodeCache::open).transpose()?,
            limits: options.limits,
            seed: options.seed,
        })
    }

    /// What each policy may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Loads `NAME.wasm` with the settings in `NAME.toml` beside it, if any. Takes as long
    /// as compiling takes: not for the serving path.
    ///
    /// # Errors
    /// The file, the phase and the reason.
    pub fn load(&self, file: &Path, trial: Trial<'_>) -> Result<Loaded, LoadError> {
        let mut report = LoadReport::default();
        let mut steps = Steps::begin(file);
        let bytes = std::fs::read(file).map_err(|e| steps.fail(Phase::Read, e))?;
        let settings =
            settings::read(&settings::beside(file)).map_err(|e| steps.fail(Phase::Settings, e))?;
        let version = PolicyVersion {
            hash: ContentHash::of(&[&bytes, settings.as_bytes()]),
            code: ContentHash::of(&[&bytes]),
            file: file.to_owned(),
            label: String::new(),
            bytes: bytes.into(),
            settings,
        };
        report.read_us = steps.lap_us();
        self.bring_up(version, trial, report)
    }

    /// Loads a version that served before, as it was: a rollback.
    ///
    /// # Errors
    /// The file it came from, the phase and the reason.
    pub fn load_version(
        &self,
        version: &PolicyVersion,
        trial: Trial<'_>,
    ) -> Result<Loaded, LoadError> {
        self.bring_up(version.clone(), trial, LoadReport::default())
    }

    fn bring_up(
        &self,
        mut version: PolicyVersion,
        mut trial: Trial<'_>,
        mut report: LoadReport,
    ) -> Result<Loaded, LoadError> {
        let file = version.file.clone();
        let mut steps = Steps::begin(&file);
        let (component, cached) = self
            .compile(&version)
            .map_err(|e| steps.fail(Phase::Compile, e))?;
        (report.compile_us, report.cached) = (steps.lap_us(), cached);

        let mut policy = contract::bind(&component, self.setting(&version))
            .map_err(|e| steps.fail(Phase::Contract, e))?
            .map_err(|e| steps.fail(Phase::Describe, e))?;
        version.label = policy.description().label();
        report.describe_us = steps.lap_us();

        policy
            .configure(trial.catalog)
            .map_err(|e| steps.fail(Phase::Configure, e))?;
        report.configure_us = steps.lap_us();

        validate(policy.as_mut(), &mut trial).map_err(|e| steps.fail(Phase::Validate, e))?;
        (report.validate_us, report.windows) = (steps.lap_us(), trial.windows.len());

        policy
            .recycle()
            .map_err(|e| steps.fail(Phase::Configure, e))?;
        report.renew_us = steps.lap_us();
        Ok(Loaded {
            interface: Interface::of(self.engine.wasmtime(), &component),
            usage: Arc::clone(policy.usage()),
            policy: policy.into_policy(),
            version,
            report,
        })
    }

    /// Whether the code came from the cache, and the code.
    fn compile(&self, version: &PolicyVersion) -> Result<(Component, bool), LoadCause> {
        let cached = self
            .cache
            .as_ref()
            .and_then(|cache| cache.find(&self.engine, version.code));
        if let Some(component) = cached {
            return Ok((component, true));
        }
        let bytes = &version.bytes;
        match whole::shape(&mut Cursor::new(bytes)).map_err(LoadCause::Io)? {
            Shape::Component => {}
            Shape::CoreModule => return Err(LoadCause::CoreModule),
            Shape::Partial => return Err(LoadCause::Truncated { bytes: bytes.len() }),
            Shape::NotWasm => return Err(LoadCause::NotWasm),
        }
        let component = Component::from_binary(self.engine.wasmtime(), bytes)
            .map_err(|error| LoadCause::Invalid(format!("{error:#}")))?;
        if let Some(cache) = &self.cache {
            cache.keep(&self.engine, version.code, &component);
        }
        Ok((component, false))
    }

    fn setting(&self, version: &PolicyVersion) -> Setting {
        let name = version.file.file_stem().unwrap_or_default();
        Setting {
            engine: self.engine.clone(),
            limits: self.limits.clone(),
            artifacts: Artifacts::new(version.file.with_extension(""), self.limits.artifact_bytes),
            settings: version.settings.clone(),
            seed: self.seed,
            file: name.to_string_lossy().into_owned(),
        }
    }
}

/// Each recorded window must be answered in time by a plan that could be applied.
fn validate(policy: &mut dyn Recyclable, trial: &mut Trial<'_>) -> Result<(), LoadCause> {
    let mut plan = Plan::default();
    for window in trial.windows {
        plan.clear();
        policy
            .schedule(window, &mut plan)
            .map_err(|fault| LoadCause::Window {
                window: window.id,
                fault,
            })?;
        (trial.check)(window, &plan).map_err(|reason| LoadCause::Plan {
            window: window.id,
            reason,
        })?;
    }
    Ok(())
}

// === impl Steps ===

impl<'a> Steps<'a> {
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

    fn fail(&self, phase: Phase, cause: impl Into<LoadCause>) -> LoadError {
        LoadError {
            file: self.file.to_owned(),
            phase,
            cause: cause.into(),
        }
    }
}
