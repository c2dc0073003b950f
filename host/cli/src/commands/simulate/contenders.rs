//! The policies of a simulation: components on fuel, and the native fallback.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{Description, EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use switchyard_policy::loader::{Loaded, Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{EngineOptions, PolicyEngine, PolicyVersion};
use switchyard_sim::Contender;
use switchyard_sim::oracle::Goal;
use switchyard_sim::overhead::{Overhead, Timed};
use tempfile::TempDir;

use super::yard::Yard;
use crate::commands::Failure;
use switchyard_server::policies::source;

/// Name of the native fallback.
pub(in crate::commands) const FALLBACK: &str = "edf";

/// Seed of every policy's random numbers.
pub(super) const SEED: u64 = 0;

/// A policy as it is typed: `[NAME=]POLICY[{SETTINGS}]`.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) struct Named {
    /// What results call it.
    pub(in crate::commands) name: String,
    /// Name or path of a component, [`FALLBACK`], or an oracle's ([`Goal::name`]).
    pub(in crate::commands) policy: String,
    /// Go before those in the file beside the component, field by field.
    pub(in crate::commands) settings: toml::Table,
}

/// Everybody who is compared.
pub(super) struct Contenders {
    pub(super) list: Vec<Contender>,
    /// Who each of them is, by content.
    pub(super) records: Vec<PolicyRecord>,
    /// Compiled code: every run has an instance of its own, each file is compiled once.
    _cache: TempDir,
}

// === impl Named ===

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (head, settings) = match text.split_once('{') {
            None => (text, toml::Table::new()),
            Some((head, rest)) => {
                let table: toml::Table = toml::from_str(&format!("settings = {{{rest}"))
                    .map_err(|error| format!("settings: {}", error.message()))?;
                let settings = table.get("settings").and_then(toml::Value::as_table);
                (head, settings.cloned().unwrap_or_default())
            }
        };
        let (name, policy) = head.split_once('=').unwrap_or((text, head));
        if name.is_empty() || policy.is_empty() {
            return Err("must be [NAME=]POLICY[{SETTINGS}]".to_owned());
        }
        let is_native = policy == FALLBACK || oracle(policy).is_some();
        if is_native && !settings.is_empty() {
            return Err(format!("{policy} has no settings"));
        }
        Ok(Self {
            name: name.to_owned(),
            policy: policy.to_owned(),
            settings,
        })
    }
}

impl Named {
    /// The component, given the folder of policies.
    pub(in crate::commands) fn file(&self, policies: &Path) -> PathBuf {
        match self.policy.ends_with(".wasm") {
            true => PathBuf::from(&self.policy),
            false => policies.join(format!("{}.wasm", self.policy)),
        }
    }
}

// === impl Contenders ===

impl Contenders {
    /// Loads every policy once, so that one that cannot be is named before anything runs.
    pub(super) fn load(named: &[Named], yard: &Yard) -> Result<Self, Failure> {
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
        for named in named {
            let (contender, record) = contender(named, yard, &loader)?;
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

/// The oracle of this name.
fn oracle(policy: &str) -> Option<Goal> {
    Goal::ALL.into_iter().find(|goal| goal.name() == policy)
}

fn contender(
    named: &Named,
    yard: &Yard,
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
    let file = named.file(&yard.policies);
    let version = source::version(&file, named.settings.clone()).map_err(Failure::input)?;
    let loaded = load(loader, &version, &yard.catalog).map_err(Failure::input)?;
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

/// The same contender, and what its windows will have taken.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<(String, String, usize), String> {
        let named: Named = text.parse()?;
        Ok((named.name, named.policy, named.settings.len()))
    }

    #[test]
    fn policies_as_they_are_typed() {
        let is =
            |name: &str, policy: &str, settings| Ok((name.to_owned(), policy.to_owned(), settings));
        assert_eq!(named("fcfs"), is("fcfs", "fcfs", 0));
        assert_eq!(named("mine=a/b.wasm"), is("mine", "a/b.wasm", 0));
        assert_eq!(
            named("sneakpeek{tau=0}"),
            is("sneakpeek{tau=0}", "sneakpeek", 1)
        );
        let both = r#"lo=sneakpeek{algorithm = "lo-edf", tau = 0}"#;
        assert_eq!(named(both), is("lo", "sneakpeek", 2));
        for wrong in [
            "",
            "=x",
            "x=",
            "x{",
            "x{tau}",
            "{tau=0}",
            "edf{tau=0}",
            "oracle-slo{tau=0}",
        ] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
