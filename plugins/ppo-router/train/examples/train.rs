//! The trainer without the server, for long trainings: builds in a minute.
//!
//! ```text
//! cargo run --release -p ppo-router-train --example train -- DIR [paper|full|extended]
//!     [--seed N,...] [--updates N] [--batching] [--better] [--resume] [--workload W]
//!     [--settings JSON] [--test_bed FILE] [--deadline-ms MS] [--first W SHARE]
//! ```
//! `switchyard prepare ppo-router` is the same with a progress bar.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use ppo_router_net::Kind;
use ppo_router_train::train::draw_seeds;
use ppo_router_train::{Progress, TestBed, TrainOptions, TrainSettings, Trained, train};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str, by: usize| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + by).cloned()
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let kind = match arguments.get(1).map(String::as_str) {
        Some("full") => Kind::Full,
        Some("extended") => Kind::Extended,
        _ => Kind::Paper,
    };
    let mut test_bed = match after("--test-bed", 1).or_else(|| after("--yard", 1)) {
        Some(file) => serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap(),
        None => TestBed::paper(),
    };
    if has("--batching") {
        test_bed = test_bed.with_batches();
    }
    let mut settings = if has("--better") {
        TrainSettings::better()
    } else {
        TrainSettings::paper()
    };
    if let Some(json) = after("--settings", 1) {
        settings = settings.with(serde_json::from_str(&json).unwrap()).unwrap();
    }
    let number = |name: &str, default: u64| after(name, 1).map_or(default, |n| n.parse().unwrap());
    test_bed.deadline_us = number("--deadline-ms", test_bed.deadline_us / 1_000) * 1_000;
    let default = "mmpp:180,10,0.036,0.002".to_owned();
    let seeds = after("--seed", 1).unwrap_or("1".to_owned());
    let seeds: Vec<u64> = seeds.split(',').map(|seed| seed.parse().unwrap()).collect();
    let dir = PathBuf::from(&arguments[0]);
    let options = TrainOptions {
        test_bed,
        workload: after("--workload", 1).unwrap_or(default),
        first: after("--first", 1).zip(after("--first", 2).map(|share| share.parse().unwrap())),
        kind,
        settings,
        updates: number("--updates", 200),
        seed: seeds[0],
        out: dir.clone(),
        resume: has("--resume"),
        every: number("--every", 10),
        validation_slots: number("--validation", 100_000),
        test_slots: number("--test", 1_000_000),
        violations_max: 0.018,
        command: format!(
            "cargo run --release -p ppo-router-train --example train -- {}",
            arguments.join(" ")
        ),
    };
    let of_seeds: Vec<TrainOptions> = match seeds[..] {
        [_] => vec![options.clone()],
        _ => seeds
            .iter()
            .map(|&seed| TrainOptions {
                seed,
                out: dir.join(format!("seed-{seed}")),
                ..options.clone()
            })
            .collect(),
    };
    let trained: Vec<Trained> = of_seeds.iter().map(one).collect();
    if trained.len() > 1 {
        let title = format!("{}, seeds {seeds:?}", options.workload);
        draw_seeds(&title, &trained, &dir).unwrap();
    }
}

fn one(options: &TrainOptions) -> Trained {
    let trained = train(options, &mut |progress: &Progress<'_>| {
        let point = progress.point;
        if let Some(v) = point.validation {
            println!(
                "{:5}/{} reward {:8.3} goodput {:.4} violation {:.4} | bursty {:.4} {:.4} normal {:.4} | \
                 validation goodput {:.4} violation {:.4} heavy {:.3} | value {:.3} clipped {:.3}",
                point.update,
                progress.updates,
                point.reward,
                point.parts[0].goodput,
                point.parts[0].violation,
                point.parts[1].goodput,
                point.parts[1].violation,
                point.parts[2].goodput,
                v.goodput,
                v.violation,
                v.heavy,
                point.unexplained,
                point.clipped,
            );
        }
        true
    });
    let trained = trained.unwrap();
    println!("{}", serde_json::to_string_pretty(&trained).unwrap());
    trained
}
