//! Runs: one, several policies on the same arrivals, many seeds and parameters in parallel.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{EarliestDeadlineFirst, Policy, PolicyFault};
use switchyard_core::time::Micros;

use crate::driver::Simulation;
use crate::metrics::{Estimates, PartEstimates, Report};
use crate::observer::Observer;
use crate::oracle::{self, Clairvoyant, Goal};
use crate::scenario::{Scenario, SimError};

/// Makes a policy, native or from a component, for each run. The runner configures it.
pub type PolicyFactory =
    Arc<dyn Fn(&Catalog) -> Result<Box<dyn Policy>, PolicyFault> + Send + Sync>;

/// A policy under a name.
#[derive(Clone)]
pub struct Contender {
    /// Name in results.
    pub name: String,
    /// Makes the policy.
    pub make: PolicyFactory,
    /// The goal of a schedule made with knowledge of all arrivals; replaces the policy.
    pub foresight: Option<Goal>,
}

/// A point of a sweep: a scenario with one value of the parameter.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// `PARAMETER=VALUE`, such as `load=200`.
    pub name: String,
    /// The scenario with that value.
    pub scenario: Scenario,
}

/// All runs of one policy at one point, by seed in the order asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyOutcome {
    /// The point's name.
    pub point: String,
    /// The policy's name.
    pub policy: String,
    /// One per seed.
    pub reports: Vec<Report>,
    /// Means and confidence intervals over the seeds.
    pub estimates: Estimates,
    /// The values behind them, in the order of the seeds: paired with those of another policy or
    /// point they give the interval of a difference.
    #[serde(default)]
    pub by_seed: BTreeMap<String, Vec<Option<f64>>>,
    /// The estimates for each app, in the catalog's order.
    pub apps: Vec<PartEstimates>,
    /// The same for each phase of the workload, if it has several.
    pub phases: Vec<PartEstimates>,
}

// === impl PolicyOutcome ===

impl PolicyOutcome {
    /// From runs that differ only in their seed.
    pub fn new(point: impl Into<String>, policy: impl Into<String>, reports: Vec<Report>) -> Self {
        Self {
            point: point.into(),
            policy: policy.into(),
            estimates: Estimates::over(&reports),
            by_seed: Estimates::by_seed(&reports),
            apps: PartEstimates::over(&reports, |report| &report.apps),
            phases: PartEstimates::over(&reports, |report| &report.phases),
            reports,
        }
    }
}

// === impl Contender ===

impl Contender {
    /// A policy made by a closure.
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

    /// An oracle that knows every arrival. Its reports also have a lower bound of the ANTT.
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
/// The scenario is wrong, the policy cannot be made, or an invariant does not hold.
pub fn run(scenario: &Scenario, policy: &Contender, seed: u64) -> Result<Report, SimError> {
    run_observed(scenario, policy, seed, &mut ())
}

/// Patience of the scheduler in runs of an oracle: longer than any run, so the fallback never serves
/// a request that the oracle delays on purpose.
const PATIENCE_US: u64 = 86_400_000_000;

/// One run with an observer.
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
    let mut patient = scenario.clone();
    patient.scheduler.patience = Micros(PATIENCE_US);
    let mut report = Simulation::try_new(&patient, policy, seed, observer)?.run()?;
    report.total.antt_least = Some(oracle::antt_least(scenario, seed)?);
    Ok(report)
}

/// Runs every policy at every point with every seed, in parallel over the cores. A seed makes the same
/// arrivals, labels and deadlines for every policy. Results are in the order of the points, then of the
/// policies; `progress` is called after each run, from any thread.
///
/// # Errors
/// The first error in that order.
pub fn sweep(
    points: &[SweepPoint],
    policies: &[Contender],
    seeds: &[u64],
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<PolicyOutcome>, SimError> {
    let (outcomes, _) = sweep_observed(points, policies, seeds, progress, |_| ())?;
    Ok(outcomes)
}

/// As [`sweep`], with an observer of each run, which it returns in the order of points, policies and seeds.
///
/// # Errors
/// As of [`sweep`].
pub fn sweep_observed<O: Observer + Send>(
    points: &[SweepPoint],
    policies: &[Contender],
    seeds: &[u64],
    progress: &(dyn Fn() + Sync),
    observer: impl Fn(&SweepPoint) -> O + Sync,
) -> Result<(Vec<PolicyOutcome>, Vec<O>), SimError> {
    let pairs: Vec<(&SweepPoint, &Contender)> = points
        .iter()
        .flat_map(|point| policies.iter().map(move |policy| (point, policy)))
        .collect();
    let jobs: Vec<(usize, u64)> = (0..pairs.len())
        .flat_map(|pair| seeds.iter().map(move |&seed| (pair, seed)))
        .collect();
    let results: Vec<(Result<Report, SimError>, O)> = jobs
        .par_iter()
        .map(|&(pair, seed)| {
            let (point, policy) = pairs[pair];
            let mut seen = observer(point);
            let report = run_observed(&point.scenario, policy, seed, &mut seen);
            progress();
            (report, seen)
        })
        .collect();
    let (results, seen): (Vec<Result<Report, SimError>>, Vec<O>) = results.into_iter().unzip();
    let mut results = results.into_iter();
    let outcomes = pairs.iter().map(|(point, policy)| {
        let reports = results.by_ref().take(seeds.len());
        let reports: Vec<Report> = reports.collect::<Result<_, _>>()?;
        Ok(PolicyOutcome::new(&point.name, &policy.name, reports))
    });
    let outcomes: Result<Vec<PolicyOutcome>, SimError> = outcomes.collect();
    Ok((outcomes?, seen))
}
