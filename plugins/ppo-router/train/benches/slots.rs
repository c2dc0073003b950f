//! Slots per minute of one core: the environment alone, and a whole update.
//!
//! `cargo bench -p ppo-router-train`; the environment's is a median of five.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use std::time::Instant;

use ppo_router_net::Kind;
use ppo_router_train::TrainSettings;
use ppo_router_train::learner::{Learner, UpdateTask};
use ppo_router_train::{Env, TestBed, train};
use switchyard_core::time::Micros;

const WORKLOAD: &str = "mmpp:180,10,0.036,0.002";
const SLOTS: u32 = 100_000;

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()
        .unwrap();
    let test_bed = TestBed::paper();
    let scenario = test_bed.scenario(WORKLOAD.parse().unwrap(), Micros(u64::MAX));
    let decision = test_bed.proportional();
    let mut rates = Vec::new();
    for seed in 0..5 {
        let mut env = Env::reset(&test_bed, &scenario, Kind::Paper, seed).unwrap();
        let begin = Instant::now();
        let mut arrivals = 0;
        for _ in 0..SLOTS {
            arrivals += env.step(&decision).unwrap().arrivals;
        }
        let minutes = begin.elapsed().as_secs_f64() / 60.0;
        let per_minute = f64::from(SLOTS) / minutes / 1e6;
        let nanos = minutes * 60e9 / arrivals as f64;
        println!(
            "environment: {per_minute:.2} million slots per minute, {nanos:.0} ns per request"
        );
        rates.push(per_minute);
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "environment, median: {:.2} million slots per minute",
        rates[2]
    );
    for (name, settings) in [
        ("paper", TrainSettings::paper()),
        ("better", TrainSettings::better()),
    ] {
        let meta = train::meta(&test_bed, Kind::Paper, &settings.hidden, WORKLOAD, 1, "");
        let task = UpdateTask {
            test_bed: &test_bed,
            scenario: &scenario,
            kind: Kind::Paper,
            settings: &settings,
            meta: &meta,
            seed: 1,
        };
        let mut learner = Learner::try_new(&task).unwrap();
        let begin = Instant::now();
        for _ in 0..4 {
            learner.update(&task, 0.0).unwrap();
        }
        let minutes = begin.elapsed().as_secs_f64() / 60.0;
        let million = 4.0 * settings.slots as f64 / 1e6;
        println!(
            "training, {name}: {:.2} million slots per minute",
            million / minutes
        );
    }
}
