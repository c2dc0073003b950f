//! The policies of a simulation: components on fuel, and the native fallback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{Description, EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use switchyard_policy::loader::{LoadError, LoadPhase, Loaded, Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{EngineOptions, LoadedCode, PolicyEngine, PolicyVersion};
use switchyard_server::policies::source;
use switchyard_sim::Contender;
use switchyard_sim::overhead::{Overhead, Timed};

use crate::error::InputError;
use crate::named::{FALLBACK, Named, oracle};
use crate::shipped;
use crate::test_bed::TestBed;

/// Seed of every policy's random numbers.
pub const SEED: u64 = 0;

/// Longest time to compile a policy. No server waits for it: a component with an interpreter takes minutes
/// on a busy machine.
const COMPILE_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Most components whose code stays in memory. A component in Python takes about 60 MB.
const LOADED_MAX: usize = 8;

/// The policies that are compared.
pub struct Contenders {
    /// In the order of the request.
    pub list: Vec<Contender>,
    /// The identity of each policy, by content.
    pub records: Vec<PolicyRecord>,
}

/// Loads policies, for one test bed or several. Each file is compiled once, and not again in a later
/// simulation; every run has its own instance.
pub struct PolicyLoader {
    engine: PolicyEngine,
    /// The code that was used last.
    loaded: LoadedCode,
}

/// Why a policy is not loaded.
#[derive(Debug)]
pub enum LoadRefusal {
    /// Its file cannot be used, on any test bed.
    File(InputError),
    /// It refuses the test bed, or its settings there.
    TestBed(LoadError),
}

// === impl LoadRefusal ===

impl LoadRefusal {
    fn of(error: LoadError) -> Self {
        match error.phase >= LoadPhase::Configure {
            true => Self::TestBed(error),
            false => Self::File(InputError::new(error)),
        }
    }
}

impl From<LoadRefusal> for InputError {
    fn from(refusal: LoadRefusal) -> Self {
        match refusal {
            LoadRefusal::File(reason) => reason,
            LoadRefusal::TestBed(error) => Self::new(error),
        }
    }
}

// === impl PolicyLoader ===

impl PolicyLoader {
    /// A loader that keeps compiled code in the user's cache.
    ///
    /// # Errors
    /// The system gives no engine.
    pub fn try_new() -> Result<Self, InputError> {
        let options = EngineOptions {
            compile_time_max: COMPILE_TIME_MAX,
            ..EngineOptions::default()
        };
        Ok(Self {
            engine: PolicyEngine::deterministic(&options).map_err(InputError::new)?,
            loaded: LoadedCode::new(LOADED_MAX),
        })
    }

    /// Loads a policy once, so that a policy that does not load is named before the first run.
    ///
    /// # Errors
    /// Names the file, the phase and the reason.
    pub fn load(
        &self,
        named: &Named,
        test_bed: &TestBed,
    ) -> Result<(Contender, PolicyRecord), LoadRefusal> {
        let options = LoaderOptions {
            cache_dir: Some(shipped::compiled_folder()),
            limits: test_bed.limits.clone(),
            seed: SEED,
        };
        let loader = Loader::new(self.engine.clone(), options);
        let loader = Arc::new(loader.with_loaded_code(self.loaded.clone()));
        contender(named, test_bed, &loader)
    }
}

// === impl Contenders ===

impl Contenders {
    /// Loads every policy once, so that a policy that does not load is named before the first run.
    pub(crate) fn load(
        named: &[Named],
        test_bed: &TestBed,
        loader: &PolicyLoader,
    ) -> Result<Self, InputError> {
        let (mut list, mut records) = (Vec::<Contender>::new(), Vec::new());
        for named in named {
            let (contender, record) = loader.load(named, test_bed)?;
            is_new(&list, &contender)?;
            list.push(contender);
            records.push(record);
        }
        Ok(Self { list, records })
    }

    /// Adds a policy of the caller at a position, or at the end.
    ///
    /// # Errors
    /// Another policy has its name.
    pub fn insert(
        &mut self,
        position: usize,
        contender: Contender,
        record: PolicyRecord,
    ) -> Result<(), InputError> {
        is_new(&self.list, &contender)?;
        let position = position.min(self.list.len());
        self.list.insert(position, contender);
        self.records.insert(position, record);
        Ok(())
    }
}

fn is_new(list: &[Contender], contender: &Contender) -> Result<(), InputError> {
    let name = &contender.name;
    match list.iter().any(|other| other.name == *name) {
        true => Err(InputError::new(format!("policy {name} is given twice"))),
        false => Ok(()),
    }
}

fn contender(
    named: &Named,
    test_bed: &TestBed,
    loader: &Arc<Loader>,
) -> Result<(Contender, PolicyRecord), LoadRefusal> {
    let Named { name, policy, .. } = named;
    if policy == FALLBACK {
        let record = PolicyRecord::native(EarliestDeadlineFirst::default().description());
        let contender = Contender::new(name, EarliestDeadlineFirst::default);
        return Ok((contender, record));
    }
    if let Some(goal) = oracle(policy) {
        let record = PolicyRecord::native(&Description {
            name: goal.name().to_owned(),
            ..Description::default()
        });
        return Ok((Contender::clairvoyant(name, goal), record));
    }
    let file = named.found_in_either(&test_bed.policies, test_bed.bundled.as_deref());
    let file = file.map_err(LoadRefusal::File)?;
    let version = source::version(&file, named.settings.clone());
    let version = version.map_err(LoadRefusal::of)?;
    let loaded = load(loader, &version, &test_bed.catalog);
    let loaded = loaded.map_err(LoadRefusal::of)?;
    let record = PolicyRecord::of(&loaded.version, loaded.policy.description());
    let loader = Arc::clone(loader);
    let contender = Contender {
        name: name.to_owned(),
        make: Arc::new(move |catalog| {
            let loaded = load(&loader, &version, catalog);
            loaded
                .map(|loaded| loaded.policy)
                .map_err(|error| PolicyFault {
                    kind: FaultKind::Failed,
                    reason: error.to_string(),
                })
        }),
        foresight: None,
    };
    Ok((contender, record))
}

/// The same contender, with a clock around its windows.
pub fn timed(contender: &Contender) -> (Contender, Overhead) {
    let (make, overhead) = (Arc::clone(&contender.make), Overhead::default());
    let began = Instant::now();
    let clock_ns = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let counted = overhead.clone();
    let timed = Contender {
        name: contender.name.clone(),
        make: Arc::new(move |catalog| {
            let timed = Timed::new(make(catalog)?, clock_ns, counted.clone());
            Ok(Box::new(timed))
        }),
        foresight: contender.foresight,
    };
    (timed, overhead)
}

fn load(loader: &Loader, version: &PolicyVersion, catalog: &Catalog) -> Result<Loaded, LoadError> {
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    loader.load_version(version, trial)
}
