//! Guarantees against a simulated worker of the round robin.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use ramsis_prepare::tables::{Arrivals, Batching, Objective};
use ramsis_prepare::{Generator, Model, Spec};
use rand::SeedableRng;
use rand_distr::{Distribution, Gamma};
use rand_pcg::Pcg64;

const WORKERS: u32 = 4;
const BATCHES: usize = 60_000;

fn spec() -> Spec {
    let models = [
        ("small", 0.58, [22, 39, 57, 69, 82, 97, 114, 126]),
        ("middle", 0.77, [54, 81, 141, 149, 177, 208, 250, 286]),
        ("large", 0.84, [117, 190, 269, 350, 450, 518, 615, 698]),
    ]
    .map(|(name, accuracy, ms)| Model {
        name: name.to_owned(),
        accuracy,
        latency_us: ms.map(|ms| ms * 1_000).to_vec(),
    });
    Spec::new(models.to_vec(), 150_000, WORKERS)
}

/// Results of the simulated worker.
struct SimulatedResult {
    accuracy: f64,
    violation_rate: f64,
}

/// Simulates one worker of the round robin under a table, with gamma gaps.
fn simulated(spec: &Spec, load_rps: f64, shape: f64) -> SimulatedResult {
    let generator = Generator::new(spec.clone()).unwrap();
    let made = generator.table(load_rps).unwrap();
    let set = generator.set(vec![made.entry.clone()]);
    let table = made.table(&set).unwrap();
    let mut random = Pcg64::seed_from_u64(7);
    // K gaps between two requests of the worker.
    let gap = Gamma::new(shape, 1e6 / load_rps / shape).unwrap();
    let mut arrived = 0.0;
    let mut arrive = || {
        arrived += (0..WORKERS).map(|_| gap.sample(&mut random)).sum::<f64>();
        arrived
    };
    let (mut next, mut now) = (arrive(), 0.0f64);
    let mut queue = VecDeque::new();
    let (mut served, mut in_time, mut right) = (0.0, 0.0, 0.0);
    let slo = spec.slo_us as f64;
    for _ in 0..BATCHES {
        if queue.is_empty() {
            now = now.max(next);
        }
        while next <= now {
            queue.push_back(next);
            next = arrive();
        }
        let slack_us = (queue[0] + slo - now) as i64;
        let action = table.action(queue.len() as u32, slack_us);
        let model = &generator.spec().models[usize::from(action.variant)];
        now += model.latency_us[usize::from(action.batch) - 1] as f64;
        for arrival in queue.drain(..usize::from(action.batch)) {
            served += 1.0;
            if now <= arrival + slo {
                in_time += 1.0;
                right += model.accuracy;
            }
        }
    }
    SimulatedResult {
        accuracy: right / in_time,
        violation_rate: 1.0 - in_time / served,
    }
}

/// Guarantees hold and are close to the simulation.
fn check(spec: &Spec, load_rps: f64, shape: f64) {
    let guaranteed = Generator::new(spec.clone())
        .unwrap()
        .table(load_rps)
        .unwrap()
        .guarantee;
    let seen = simulated(spec, load_rps, shape);
    let noise = 0.002;
    let message = format!(
        "{load_rps}/s: {:.4} for {:.4}, late {:.4} for {:.4}",
        seen.accuracy, guaranteed.accuracy, seen.violation_rate, guaranteed.violation_rate
    );
    assert!(seen.accuracy > guaranteed.accuracy - noise, "{message}");
    assert!(seen.accuracy < guaranteed.accuracy + 0.02, "{message}");
    assert!(
        seen.violation_rate < guaranteed.violation_rate + noise,
        "{message}"
    );
    assert!(
        guaranteed.violation_rate < seen.violation_rate + 0.02,
        "{message}"
    );
}

#[test]
fn guarantees_hold_for_a_worker_of_the_round_robin() {
    for load_rps in [10.0, 60.0, 110.0, 160.0, 200.0] {
        check(&spec(), load_rps, 1.0);
    }
}

#[test]
fn guarantees_hold_under_the_papers_objective() {
    let spec = Spec {
        objective: Objective::Decision,
        ..spec()
    };
    check(&spec, 110.0, 1.0);
}

#[test]
fn guarantees_hold_for_gamma_gaps() {
    for shape in [0.5, 3.0] {
        let spec = Spec {
            arrivals: Arrivals::Gamma { shape },
            ..spec()
        };
        check(&spec, 110.0, shape);
    }
}

#[test]
fn guarantees_hold_for_variable_batching() {
    let spec = Spec {
        batching: Batching::Variable,
        queue_max: 6,
        ..spec()
    };
    check(&spec, 130.0, 1.0);
}
