//! Requests simulated per second of wall time on one core, 60 workers, native policies.
//!
//! `cargo bench -p switchyard-sim`; `-- --quick` for a tenth of the requests. Medians of runs
//! that take turns, so that what else the machine does hits all of them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

#[path = "throughput/policies.rs"]
mod policies;
#[path = "throughput/yard.rs"]
mod yard;

use std::time::Instant;

use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::time::Micros;
use switchyard_sim::{Contender, Report, Scenario, run};

use policies::{JoinIdle, Routed};

const WORKERS: usize = 60;

/// A policy at a load, and what its runs took.
struct Case {
    name: &'static str,
    policy: Contender,
    scenario: Scenario,
    seconds: Vec<f64>,
    report: Option<Report>,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (requests, turns) = if quick { (200_000, 3) } else { (2_000_000, 5) };
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let mut cases = cases(requests);
    cases.retain(|case| only.as_ref().is_none_or(|only| case.name.contains(only)));
    for _ in 0..turns {
        cases.iter_mut().for_each(Case::turn);
    }
    println!("{requests} requests, {WORKERS} workers, median of {turns} runs");
    println!("policy            | requests/s | windows | mean batch | in time");
    println!("----------------- | ---------- | ------- | ---------- | -------");
    for case in &mut cases {
        case.print();
    }
}

fn cases(requests: u64) -> Vec<Case> {
    let case = |name, policy, rate: u32| {
        let workload = format!("poisson:{rate}").parse().unwrap();
        let scenario = Scenario {
            requests_max: requests,
            duration: Micros(u64::MAX),
            ..Scenario::new(yard::catalog(WORKERS), workload)
        };
        Case {
            name,
            policy,
            scenario,
            seconds: Vec::new(),
            report: None,
        }
    };
    let periodic = |ms| {
        Contender::new("join-idle", move || {
            JoinIdle::every(Micros::from_millis(ms))
        })
    };
    vec![
        case(
            "join-idle, event",
            Contender::new("join-idle", JoinIdle::on_events),
            6_000,
        ),
        case("join-idle, 10 ms", periodic(10), 20_000),
        case("join-idle, 2 ms", periodic(2), 20_000),
        case("routed", Contender::new("routed", Routed::default), 6_000),
        case(
            "edf",
            Contender::new("edf", EarliestDeadlineFirst::default),
            20_000,
        ),
    ]
}

// === impl Case ===

impl Case {
    fn turn(&mut self) {
        let began = Instant::now();
        let report = run(&self.scenario, &self.policy, 1).unwrap();
        self.seconds.push(began.elapsed().as_secs_f64());
        self.report = Some(report);
    }

    fn print(&mut self) {
        self.seconds.sort_by(f64::total_cmp);
        let report = self.report.as_ref().unwrap();
        println!(
            "{:<17} | {:>10.0} | {:>7} | {:>10.2} | {:>6.1}%",
            self.name,
            report.total.arrivals as f64 / self.seconds[self.seconds.len() / 2],
            report.windows,
            report.batches.size_mean.unwrap_or_default(),
            100.0 * report.total.in_time_ratio,
        );
    }
}
