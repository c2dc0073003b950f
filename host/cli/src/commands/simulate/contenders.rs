//! The policies of a simulation: components on fuel, and the native fallback.

use std::sync::Arc;
use std::time::Instant;

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{Description, EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use switchyard_policy::loader::{Loaded, Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{EngineOptions, PolicyEngine, PolicyVersion};
use switchyard_server::policies::source;
use switchyard_sim::Contender;
use switchyard_sim::overhead::{Overhead, Timed};
use tempfile::TempDir;

use super::named::{FALLBACK, Named, oracle};
use super::test_bed::TestBed;
use crate::commands::failure::Failure;

/// Seed of every policy's random numbers.
pub(super) const SEED: u64 = 0;

/// The policies that are compared.
pub(super) struct Contenders {
    pub(super) list: Vec<Contender>,
    /// The identity of each policy, by content.
    pub(super) records: Vec<PolicyRecord>,
    /// Compiled code. Each file is compiled once; every run has its own instance.
    _cache: TempDir,
}

// === impl Contenders ===

impl Contenders {
    /// Loads every policy once, so that a policy that does not load is named before the first run.
    pub(super) fn load(named: &[Named], test_bed: &TestBed) -> Result<Self, Failure> {
        let cache = tempfile::tempdir().map_err(Failure::input)?;
        let engine =
            PolicyEngine::deterministic(&EngineOptions::default()).map_err(Failure::check)?;
        let options = LoaderOptions {
            cache_dir: Some(cache.path().to_owned()),
            limits: test_bed.limits.clone(),
            seed: SEED,
        };
        let loader = Arc::new(Loader::new(engine, options));
        let (mut list, mut records) = (Vec::<Contender>::new(), Vec::new());
        for named in named {
            let (contender, record) = contender(named, test_bed, &loader)?;
            if list.iter().any(|other| other.name == contender.name) {
                let name = &contender.name;
                return Err(Failure::input(format!("policy {name} is given twice")));
            }
            list.push(contender);
            records.push(record);
        }
        Ok(Self {
            list,
            records,
            _cache: cache,
        })
    }
}

fn contender(
    named: &Named,
    test_bed: &TestBed,
    loader: &Arc<Loader>,
) -> Result<(Contender, PolicyRecord), Failure> {
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
    let file = named.found_in(&test_bed.policies)?;
    let version = source::version(&file, named.settings.clone()).map_err(Failure::input)?;
    let loaded = load(loader, &version, &test_bed.catalog).map_err(Failure::input)?;
    let record = PolicyRecord::of(&loaded.version, loaded.policy.description());
    let loader = Arc::clone(loader);
    let contender = Contender {
        name: name.to_owned(),
        make: Arc::new(move |catalog| {
            let loaded = load(&loader, &version, catalog);
            loaded
                .map(|loaded| loaded.policy)
                .map_err(|reason| PolicyFault {
                    kind: FaultKind::Failed,
                    reason,
                })
        }),
        foresight: None,
    };
    Ok((contender, record))
}

/// The same contender, with a clock around its windows.
pub(super) fn timed(contender: &Contender) -> (Contender, Overhead) {
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

fn load(loader: &Loader, version: &PolicyVersion, catalog: &Catalog) -> Result<Loaded, String> {
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    loader
        .load_version(version, trial)
        .map_err(|error| error.to_string())
}
