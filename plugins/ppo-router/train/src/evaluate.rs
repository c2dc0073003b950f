//! Evaluation of a network: long simulations without noise, on arrivals that no training used.

use ppo_router_net::{Decision, Kind, Network, Scratch};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;
use switchyard_sim::metrics::Summary;
use switchyard_sim::{Report, SimError, Workload};

use crate::bounds::{BatchBounds, BoundCounts};
use crate::env::Env;
use crate::test_bed::TestBed;

/// The evaluation of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Slots per seed.
    pub slots: u64,
    /// Seeds of the simulations.
    pub seeds: Vec<u64>,
    /// All requests.
    pub overall: EvaluationPart,
    /// The requests that arrived in each phase.
    pub phases: Vec<EvaluationPart>,
    /// The batch bounds, if the network chooses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BatchBounds>,
}

/// The ratios of a group of requests, over its arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvaluationPart {
    /// Name of the group in the simulator.
    pub name: String,
    /// Requests that arrived.
    pub arrivals: u64,
    /// Sum of the profiled accuracies of answers in time.
    pub goodput_ratio: f64,
    /// Late or rejected requests.
    pub violation_ratio: f64,
    /// Late requests.
    pub late_ratio: f64,
    /// Rejected or dropped requests.
    pub rejection_ratio: f64,
    /// Share of the answers by the most accurate model.
    pub heavy_share: f64,
}

// === impl EvaluationPart ===

impl EvaluationPart {
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

/// Evaluates a network with one simulation of `slots` slots per seed.
///
/// # Errors
/// Errors of the simulator.
pub fn evaluate(
    network: &Network,
    test_bed: &TestBed,
    workload: &Workload,
    slots: u64,
    seeds: &[u64],
) -> Result<Evaluation, SimError> {
    let runs: Vec<(Report, BoundCounts)> = seeds
        .par_iter()
        .map(|&seed| {
            let (mut scratch, mut chosen) = (Scratch::default(), BoundCounts::default());
            let kind = network.meta().layout.kind;
            let decide = |phase: usize, observation: &[f32], decision: &mut Decision| {
                network.decide(observation, &mut scratch, decision);
                chosen.count(phase, decision);
            };
            let report = run(test_bed, workload, kind, slots, seed, decide)?;
            Ok((report, chosen))
        })
        .collect::<Result<_, SimError>>()?;
    let (mut reports, mut all) = (Vec::new(), BoundCounts::default());
    for (report, chosen) in runs {
        reports.push(report);
        all.add(chosen);
    }
    Ok(Evaluation {
        bounds: all.bounds(&network.meta().variants),
        ..summarised(slots, seeds, &reports)
    })
}

/// Simulates an agent that decides by the phase at the start of a slot and by the observation.
///
/// # Errors
/// Errors of the simulator.
pub fn run(
    test_bed: &TestBed,
    workload: &Workload,
    kind: Kind,
    slots: u64,
    seed: u64,
    mut decide: impl FnMut(usize, &[f32], &mut Decision),
) -> Result<Report, SimError> {
    let scenario = test_bed.scenario(workload.clone(), Micros(slots * test_bed.slot_us));
    let mut env = Env::reset(test_bed, &scenario, kind, seed)?;
    let mut decision = Decision::default();
    for _ in 0..slots {
        decide(env.phase(), env.observation(), &mut decision);
        env.step(&decision)?;
    }
    env.finish()
}

/// The evaluation over several simulations of an agent.
#[must_use]
pub fn summarised(slots: u64, seeds: &[u64], runs: &[Report]) -> Evaluation {
    let phases = runs.first().map_or(&[][..], |run| &run.phases);
    let phases = phases.iter().enumerate().map(|(p, phase)| {
        let same = runs.iter().map(move |run| &run.phases[p].summary);
        EvaluationPart::over(&phase.name, same)
    });
    Evaluation {
        slots,
        seeds: seeds.to_vec(),
        overall: EvaluationPart::over("overall", runs.iter().map(|run| &run.total)),
        phases: phases.collect(),
        bounds: Vec::new(),
    }
}
