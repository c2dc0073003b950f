//! Guarantees for join-the-shortest-queue against a simulation, within the tolerance of the
//! approximate law.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use ramsis_prepare::tables::{Balancing, Table};
use ramsis_prepare::{Generator, Grid, Model, Spec};
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp};
use rand_pcg::Pcg64;

const WORKERS: usize = 8;
const REQUESTS: usize = 40_000;

#[derive(Default)]
struct SimulatedWorker {
    waiting: VecDeque<f64>,
    serving: usize,
    free_at: f64,
}

fn spec() -> Spec {
    let models = [
        ("small", 0.58, [22, 39, 57, 69, 82, 97]),
        ("middle", 0.77, [54, 81, 141, 149, 177, 208]),
        ("large", 0.84, [117, 190, 269, 350, 450, 518]),
    ]
    .map(|(name, accuracy, ms)| Model {
        name: name.to_owned(),
        accuracy,
        latency_us: ms.map(|ms| ms * 1_000).to_vec(),
    });
    Spec {
        balancing: Balancing::ShortestQueue,
        grid: Grid::Fixed(30),
        ..Spec::new(models.to_vec(), 150_000, WORKERS as u32)
    }
}

/// Simulated accuracy of all requests; late requests count as wrong.
fn simulated(generator: &Generator, table: &Table, load_rps: f64) -> f64 {
    let models = &generator.spec().models;
    let slo = generator.spec().slo_us as f64;
    let mut random = Pcg64::seed_from_u64(3);
    let gap = Exp::new(load_rps / 1e6).unwrap();
    let mut workers: Vec<SimulatedWorker> =
        (0..WORKERS).map(|_| SimulatedWorker::default()).collect();
    let (mut now, mut served, mut right) = (0.0, 0.0, 0.0);
    for _ in 0..REQUESTS {
        now += gap.sample(&mut random);
        for worker in &mut workers {
            while worker.serving > 0 && worker.free_at <= now {
                worker.serving = 0;
                let at = worker.free_at;
                run(worker, at, table, models, slo, &mut served, &mut right);
            }
        }
        let of = |worker: &SimulatedWorker| worker.serving + worker.waiting.len();
        let fewest = workers.iter().map(of).min().unwrap();
        let shortest: Vec<usize> = (0..WORKERS)
            .filter(|&w| of(&workers[w]) == fewest)
            .collect();
        let worker = &mut workers[shortest[random.random_range(0..shortest.len())]];
        worker.waiting.push_back(now);
        if worker.serving == 0 {
            run(worker, now, table, models, slo, &mut served, &mut right);
        }
    }
    right / served
}

fn run(
    worker: &mut SimulatedWorker,
    at: f64,
    table: &Table,
    models: &[Model],
    slo: f64,
    served: &mut f64,
    right: &mut f64,
) {
    let Some(first) = worker.waiting.front() else {
        return;
    };
    let slack_us = (first + slo - at) as i64;
    let action = table.action(worker.waiting.len() as u32, slack_us);
    let model = &models[usize::from(action.variant)];
    worker.serving = usize::from(action.batch);
    worker.free_at = at + model.latency_us[worker.serving - 1] as f64;
    for arrival in worker.waiting.drain(..worker.serving) {
        *served += 1.0;
        if worker.free_at <= arrival + slo {
            *right += model.accuracy;
        }
    }
}

#[test]
fn guarantees_are_close_to_the_simulation() {
    let generator = Generator::new(spec()).unwrap();
    for load_rps in [80.0, 200.0] {
        let made = generator.table(load_rps).unwrap();
        let set = generator.set(vec![made.entry.clone()]);
        let table = made.table(&set).unwrap();
        let seen = simulated(&generator, &table, load_rps);
        let guaranteed = made.guarantee.accuracy_of_all;
        assert!(
            (seen - guaranteed).abs() < 0.03,
            "{load_rps}/s: {seen:.4} for {guaranteed:.4}"
        );
    }
}
