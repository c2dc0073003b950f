//! The arrivals of a simulation, served: a server of its own gets the same requests over HTTP, and its
//! answers give the same metrics.
//!
//! In data order:
//! - [`options`]: the options
//! - `configuration`: the server's configuration, from the one that is simulated
//! - `inputs`: the bodies of the requests
//! - `client`: sends each request when it is due; `replies`: from replies to ends
//! - `served`: one run; here: all of them

mod client;
mod configuration;
mod inputs;
mod options;
mod replies;
mod served;

pub(crate) use options::{LiveOptions, LiveWorkers};

use std::collections::BTreeMap;
use std::fs;

use switchyard_sim::metrics::Estimate;
use switchyard_sim::served::ServedRun;
use switchyard_sim::{PolicyOutcome, SweepPoint};
use switchyard_simulate::Prepared;

use crate::commands::Failure;
use replies::Overheads;

/// The point of the live runs.
pub(crate) const LIVE: &str = "live";

/// The folder in which a server keeps versions of its policy, in its own folder.
const POLICIES: &str = "policies";

/// The point of the simulated runs with the same arrivals.
pub(crate) const SIMULATED: &str = "simulated";

/// Serves every policy with every seed, each on a server of its own, one after the other. `progress` is
/// called after each run.
///
/// # Errors
/// A server cannot be started, or a policy cannot be served.
pub(crate) fn outcomes(
    prepared: &Prepared,
    options: &LiveOptions,
    progress: &dyn Fn(),
) -> Result<Vec<PolicyOutcome>, Failure> {
    let point = prepared.points.first();
    let SweepPoint { scenario, .. } = point.ok_or_else(|| Failure::input("no run"))?;
    let folder = tempfile::tempdir().map_err(Failure::input)?;
    let file = folder.path().join("switchyard.toml");
    fs::create_dir(folder.path().join(POLICIES)).map_err(Failure::input)?;
    let mut outcomes = Vec::new();
    for named in &prepared.request.policies {
        let text = configuration::configuration(prepared, options, named, folder.path())?;
        fs::write(&file, text).map_err(Failure::input)?;
        let (mut reports, mut overheads) = (Vec::new(), Vec::new());
        for &seed in &prepared.request.seeds {
            let run = ServedRun::draw(scenario, seed).map_err(Failure::input)?;
            let served = served::serve(&file, &run, &scenario.catalog, seed, options)?;
            reports.push(run.report(&served.ends, &served.totals));
            overheads.push(served.overheads);
            progress();
        }
        let mut outcome = PolicyOutcome::new(LIVE, &named.name, reports);
        add(&mut outcome, &overheads);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Adds metrics that only a live run has.
fn add(outcome: &mut PolicyOutcome, overheads: &[Overheads]) {
    let mut by_metric: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (metric, ms) in overheads.iter().flat_map(Overheads::metrics) {
        by_metric.entry(metric).or_default().push(ms);
    }
    for (metric, values) in by_metric {
        if let Some(estimate) = Estimate::of(&values) {
            outcome.estimates.0.insert(metric.to_owned(), estimate);
        }
        let values = values.into_iter().map(Some).collect();
        outcome.by_seed.insert(metric.to_owned(), values);
    }
}
