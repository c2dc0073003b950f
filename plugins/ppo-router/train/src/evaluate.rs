//! How good a network is: long runs without noise, on arrivals that no training has seen.

use ppo_router_net::{Decision, Kind, Network, Scratch};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;
use switchyard_sim::metrics::Summary;
use switchyard_sim::{Report, SimError, Workload};

use crate::bounds::{Bounds, Chosen};
use crate::env::Env;
use crate::yard::Yard;

/// What the simulator reports of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Slots of each run.
    pub slots: u64,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// All requests.
    pub overall: Part,
    /// Those that arrived in each phase.
    pub phases: Vec<Part>,
    /// What was chosen for batches, where anything was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounds>,
}

/// Some of the requests. Ratios are of arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// As the simulator calls it.
    pub name: String,
    /// Requests that arrived.
    pub arrivals: u64,
    /// Profiled accuracy of the answers in time.
    pub goodput_ratio: f64,
    /// Late or rejected.
    pub violation_ratio: f64,
    /// Late.
    pub late_ratio: f64,
    /// Rejected.
    pub rejection_ratio: f64,
    /// Answered by the most accurate model, of those answered.
    pub heavy_share: f64,
}

// === impl Part ===

impl Part {
    fn over<'r>(name: &str, summaries: impl Iterator<Item = &'r Summary> + Clone) -> Self {
        let arrivals: u64 = summaries.clone().map(|summary| summary.arrivals).sum();
        let mean = |of: &dyn Fn(&Summary) -> f64| {
            let sum: f64 = summaries.clone().map(|s| of(s) * s.arrivals as f64).sum();
            sum / arrivals.max(1) as f64
        };
        Self {
            name: name.to_owned(),
            arrivals,
            goodput_ratio: mean(&|s| s.goodput_ratio),
            violation_ratio: mean(&|s| s.violation_ratio),
            late_ratio: mean(&|s| s.late_ratio),
            rejection_ratio: mean(&|s| s.rejection_ratio + s.drop_ratio),
            heavy_share: mean(&|s| s.heavy_share.unwrap_or(0.0)),
        }
    }
}

/// One run per seed, of so many slots each.
///
/// # Errors
/// The simulator's.
pub fn evaluate(
    network: &Network,
    yard: &Yard,
    workload: &Workload,
    slots: u64,
    seeds: &[u64],
) -> Result<Evaluation, SimError> {
    let runs: Vec<(Report, Chosen)> = seeds
        .par_iter()
        .map(|&seed| {
            let (mut scratch, mut chosen) = (Scratch::default(), Chosen::default());
            let kind = network.meta().layout.kind;
            let decide = |phase: usize, observation: &[f32], decision: &mut Decision| {
                network.decide(observation, &mut scratch, decision);
                chosen.count(phase, decision);
            };
            let report = run(yard, workload, kind, slots, seed, decide)?;
            Ok((report, chosen))
        })
        .collect::<Result<_, SimError>>()?;
    let (mut reports, mut all) = (Vec::new(), Chosen::default());
    for (report, chosen) in runs {
        reports.push(report);
        all.add(chosen);
    }
    Ok(Evaluation {
        bounds: all.bounds(&network.meta().variants),
        ..summarised(slots, seeds, &reports)
    })
}

/// A run of any agent that decides by the phase in which a slot begins, and by what is seen.
///
/// # Errors
/// The simulator's.
pub fn run(
    yard: &Yard,
    workload: &Workload,
    kind: Kind,
    slots: u64,
    seed: u64,
    mut decide: impl FnMut(usize, &[f32], &mut Decision),
) -> Result<Report, SimError> {
    let scenario = yard.scenario(workload.clone(), Micros(slots * yard.slot_us));
    let mut env = Env::reset(yard, &scenario, kind, seed)?;
    let mut decision = Decision::default();
    for _ in 0..slots {
        decide(env.phase(), env.observation(), &mut decision);
        env.step(&decision)?;
    }
    env.finish()
}

/// Runs of one agent together.
#[must_use]
pub fn summarised(slots: u64, seeds: &[u64], runs: &[Report]) -> Evaluation {
    let phases = runs.first().map_or(&[][..], |run| &run.phases);
    let phases = phases.iter().enumerate().map(|(p, phase)| {
        let same = runs.iter().map(move |run| &run.phases[p].summary);
        Part::over(&phase.name, same)
    });
    Evaluation {
        slots,
        seeds: seeds.to_vec(),
        overall: Part::over("overall", runs.iter().map(|run| &run.total)),
        phases: phases.collect(),
        bounds: Vec::new(),
    }
}
