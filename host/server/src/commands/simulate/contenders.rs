//! The policies of a simulation: components on fuel, and the native fallback.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use switchyard_policy::loader::{Loader, LoaderOptions, Trial};
use switchyard_policy::{EngineOptions, PolicyEngine};
use switchyard_sim::Contender;
use switchyard_sim::overhead::{Overhead, Timed};
use tempfile::TempDir;

use super::yard::Yard;
use crate::commands::Failure;

/// Name of the native fallback.
const FALLBACK: &str = "edf";

/// Everybody who is compared.
pub(super) struct Contenders {
    pub(super) list: Vec<Contender>,
    /// Host time of the windows of each.
    pub(super) overheads: Vec<Overhead>,
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
            seed: 0,
        };
        let loader = Arc::new(Loader::new(engine, options).map_err(Failure::input)?);
        let mut list: Vec<Contender> = Vec::new();
        let mut overheads = Vec::new();
        for name in names {
            let contender = contender(name, yard, &loader)?;
            if list.iter().any(|other| other.name == contender.name) {
                return Err(Failure::input(format!("policy {name} is given twice")));
            }
            let overhead = Overhead::default();
            list.push(timed(contender, &overhead));
            overheads.push(overhead);
        }
        Ok(Self {
            list,
            overheads,
            _cache: cache,
        })
    }
}

fn contender(name: &str, yard: &Yard, loader: &Arc<Loader>) -> Result<Contender, Failure> {
    if name == FALLBACK {
        return Ok(Contender::new(name, EarliestDeadlineFirst::default));
    }
    let file = if name.ends_with(".wasm") {
        PathBuf::from(name)
    } else {
        yard.policies.join(format!("{name}.wasm"))
    };
    load(loader, &file, &yard.catalog).map_err(Failure::input)?;
    let loader = Arc::clone(loader);
    Ok(Contender {
        name: name.to_owned(),
        make: Arc::new(move |catalog| {
            load(&loader, &file, catalog).map_err(|reason| PolicyFault {
                kind: FaultKind::Failed,
                reason,
            })
        }),
    })
}

/// The same contender; what its windows take is counted.
fn timed(contender: Contender, overhead: &Overhead) -> Contender {
    let (make, overhead) = (contender.make, overhead.clone());
    let began = Instant::now();
    let clock_ns = move || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Contender {
        name: contender.name,
        make: Arc::new(move |catalog| {
            let timed = Timed::new(make(catalog)?, clock_ns, overhead.clone());
            Ok(Box::new(timed))
        }),
    }
}

fn load(loader: &Loader, file: &Path, catalog: &Catalog) -> Result<Box<dyn Policy>, String> {
    let trial = Trial {
        catalog,
        windows: &[],
        check: &mut |_, _| Ok(()),
    };
    let loaded = loader
        .load(file, trial)
        .map_err(|error| error.to_string())?;
    Ok(loaded.policy)
}
