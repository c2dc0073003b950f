//! Runs: one, several policies on the same arrivals, many seeds and parameters in parallel.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{EarliestDeadlineFirst, Policy, PolicyFault};
use switchyard_core::time::Micros;

use crate::driver::{Observer, Simulation};
use crate::metrics::{Estimates, PartEstimates, Report};
use crate::oracle::{self, Clairvoyant, Goal};
use crate::scenario::{Scenario, SimError};

/// Makes a policy anew for each run; native ones and components alike. The runner configures it.
pub type PolicyFactory =
    Arc<dyn Fn(&Catalog) -> Result<Box<dyn Policy>, PolicyFault> + Send + Sync>;

/// A policy under a name.
#[derive(Clone)]
pub struct Contender {
    /// Name in results.
    pub name: String,
    /// Makes it.
    pub make: PolicyFactory,
    /// It knows the run before it begins, and decides all of it for this; it is not made then.
    pub foresight: Option<Goal>,
}

/// A point of a sweep: a scenario under the value that makes it special.
#[derive(Clone, Debug)]
pub struct Point {
    /// Such as `load=200`.
    pub name: String,
    /// What is run there.
    pub scenario: Scenario,
}

/// All runs of one policy at one point, by seed in the order asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The point's name.
    pub point: String,
    /// The policy's name.
    pub policy: String,
    /// One per seed.
    pub reports: Vec<Report>,
    /// Means and confidence intervals over the seeds.
    pub estimates: Estimates,
    /// The same of each app, in the catalog's order.
    pub apps: Vec<PartEstimates>,
    /// The same of each phase of the workload, where it has several.
    pub phases: Vec<PartEstimates>,
}

// === impl Outcome ===

impl Outcome {
    /// Of runs that differ in nothing but their seed.
    pub fn new(point: impl Into<String>, policy: impl Into<String>, reports: Vec<Report>) -> Self {
        Self {
            point: point.into(),
            policy: policy.into(),
            estimates: Estimates::over(&reports),
            apps: PartEstimates::over(&reports, |report| &report.apps),
            phases: PartEstimates::over(&reports, |report| &report.phases),
            reports,
        }
    }
}

// === impl Contender ===

impl Contender {
    /// A policy that a closure makes.
    pub fn new<P: Policy + 'static>(
        name: &str,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            make: Arc::new(move |_| Ok(Box::new(make()))),
            foresight: None,
        }
    }

    /// One that knows every arrival. Its reports also say what nobody's ANTT can be below.
    pub fn clairvoyant(name: &str, goal: Goal) -> Self {
        Self {
            foresight: Some(goal),
            ..Self::new(name, EarliestDeadlineFirst::default)
        }
    }

    fn configured(&self, catalog: &Catalog) -> Result<Box<dyn Policy>, SimError> {
        let made = (self.make)(catalog).and_then(|mut policy| {
            policy.configure(catalog)?;
            Ok(policy)
        });
        made.map_err(|fault| SimError::Policy {
            policy: self.name.clone(),
            fault,
        })
    }
}

/// One run.
///
/// # Errors
/// The scenario makes no sense, the policy cannot be made, or an invariant broke.
pub fn run(scenario: &Scenario, policy: &Contender, seed: u64) -> Result<Report, SimError> {
    run_observed(scenario, policy, seed, &mut ())
}

/// How long past its deadline an oracle lets a request wait: no fallback is to step in, a day is more
/// than any run has.
const PATIENCE_US: u64 = 86_400_000_000;

/// One run that somebody watches.
///
/// # Errors
/// As [`run`].
pub fn run_observed<O: Observer>(
    scenario: &Scenario,
    policy: &Contender,
    seed: u64,
    observer: &mut O,
) -> Result<Report, SimError> {
    let Some(goal) = policy.foresight else {
        let policy = policy.configured(&scenario.catalog)?;
        return Simulation::try_new(scenario, policy, seed, observer)?.run();
    };
    let policy = Box::new(Clairvoyant::of_run(scenario, seed, goal)?);
    // What has missed its deadline may wait for as long as that helps others.
    let mut patient = scenario.clone();
    patient.scheduler.patience = Micros(PATIENCE_US);
    let mut report = Simulation::try_new(&patient, policy, seed, observer)?.run()?;
    report.total.antt_least = Some(oracle::antt_least(scenario, seed)?);
    Ok(report)
}

/// Every policy at every point with every seed, in parallel over the cores. A seed makes the
/// same arrivals, labels and deadlines for every policy. Results come in the order of the
/// points, then of the policies; `progress` is called after each run, from any thread.
///
/// # Errors
/// The first error in that order.
pub fn sweep(
    points: &[Point],
    policies: &[Contender],
    seeds: &[u64],
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Outcome>, SimError> {
    let pairs: Vec<(&Point, &Contender)> = points
        .iter()
        .flat_map(|point| policies.iter().map(move |policy| (point, policy)))
        .collect();
    let jobs: Vec<(usize, u64)> = (0..pairs.len())
        .flat_map(|pair| seeds.iter().map(move |&seed| (pair, seed)))
        .collect();
    let results: Vec<Result<Report, SimError>> = jobs
        .par_iter()
        .map(|&(pair, seed)| {
            let (point, policy) = pairs[pair];
            let report = run(&point.scenario, policy, seed);
            progress();
            report
        })
        .collect();
    let mut results = results.into_iter();
    let outcomes = pairs.iter().map(|(point, policy)| {
        let reports = results.by_ref().take(seeds.len());
        let reports: Vec<Report> = reports.collect::<Result<_, _>>()?;
        Ok(Outcome::new(&point.name, &policy.name, reports))
    });
    outcomes.collect()
}
