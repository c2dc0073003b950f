//! The policies of a simulation: components on fuel, and the native fallback.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use switchyard_policy::loader::{Loaded, Loader, LoaderOptions, Trial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{EngineOptions, PolicyEngine};
use switchyard_sim::Contender;
use tempfile::TempDir;

use super::yard::Yard;
use crate::commands::Failure;

/// Name of the native fallback.
const FALLBACK: &str = "edf";

/// Seed of every policy's random numbers.
pub(super) const SEED: u64 = 0;

/// Everybody who is compared.
pub(super) struct Contenders {
    pub(super) list: Vec<Contender>,
    /// Who each of them is, by content.
    pub(super) records: Vec<PolicyRecord>,
    /// Compiled code: every run has an instance of its own, each file is compiled once.
    _cache: TempDir,
}

// === impl Contenders ===

impl Contenders {
    /// Loads every policy once, so that one that cannot be is named before anything runs.
    pub(super) fn load(names: &[String], yard: &Yard) -> Result<Self, Failure> {
        let cache = tempfile::tempdir().map_err(Failure::input)?;
        let engine =
            PolicyEngine::deterministic(&EngineOptions::default()).map_err(Failure::check)?;
        let options = LoaderOptions {
            cache_dir: Some(cache.path().to_owned()),
            limits: yard.limits.clone(),
            seed: SEED,
        };
        let loader = Arc::new(Loader::new(engine, options).map_err(Failure::input)?);
        let (mut list, mut records) = (Vec::<Contender>::new(), Vec::new());
        for name in names {
            let (contender, record) = contender(name, yard, &loader)?;
            if list.iter().any(|other| other.name == contender.name) {
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
    name: &str,
    yard: &Yard,
    loader: &Arc<Loader>,
) -> Result<(Contender, PolicyRecord), Failure> {
    if name == FALLBACK {
        let record = PolicyRecord::native(EarliestDeadlineFirst::default().description());
        let contender = Contender::new(name, EarliestDeadlineFirst::default);
        return Ok((contender, record));
    }
    let file = if name.ends_with(".wasm") {
        PathBuf::from(name)
    } else {
        yard.policies.join(format!("{name}.wasm"))
    };
    let loaded = load(loader, &file, &yard.catalog).map_err(Failure::input)?;
    let record = PolicyRecord::of(&loaded.version, loaded.policy.description());
    let loader = Arc::clone(loader);
    let contender = Contender {
        name: name.to_owned(),
        make: Arc::new(move |catalog| {
            let loaded = load(&loader, &file, catalog);
            loaded
                .map(|loaded| loaded.policy)
                .map_err(|reason| PolicyFault {
                    kind: FaultKind::Failed,
                    reason,
                })
        }),
    };
    Ok((contender, record))
}

fn load(loader: &Loader, file: &Path, catalog: &Catalog) -> Result<Loaded, String> {
    let trial = Trial {
        catalog,
        windows: &[],
        check: &mut |_, _| Ok(()),
    };
    loader.load(file, trial).map_err(|error| error.to_string())
}
