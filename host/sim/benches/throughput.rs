//! Requests simulated per second of one core, 60 workers, native policies; for components see
//! `host/policy/benches/simulated.rs`.
//!
//! `cargo bench -p switchyard-sim`; `-- --quick` for a tenth of the requests. Prints medians of
//! interleaved runs, so that other load on the machine affects all of them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

#[path = "throughput/clock.rs"]
mod clock;
#[path = "throughput/policies.rs"]
mod policies;
#[path = "throughput/test_bed.rs"]
mod test_bed;

use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::time::Micros;
use switchyard_sim::{Contender, Report, Scenario, run};

use clock::{Clock, Elapsed, median};
use policies::{JoinIdle, Routed};

const WORKERS: usize = 60;

/// A policy at a load, and the times of its runs.
struct BenchCase {
    name: &'static str,
    policy: Contender,
    scenario: Scenario,
    took: Vec<Elapsed>,
    report: Option<Report>,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (requests, turns) = if quick { (200_000, 3) } else { (2_000_000, 5) };
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let mut cases = cases(requests);
    cases.retain(|case| only.as_ref().is_none_or(|only| case.name.contains(only)));
    for _ in 0..turns {
        cases.iter_mut().for_each(BenchCase::run_once);
    }
    println!("{requests} requests, {WORKERS} workers, median of {turns} runs");
    println!("requests per second of processor time and of wall time");
    println!("policy            |  processor |       wall | windows | mean batch | in time");
    println!("----------------- | ---------- | ---------- | ------- | ---------- | -------");
    cases.iter().for_each(BenchCase::print);
}

fn cases(requests: u64) -> Vec<BenchCase> {
    let case = |name, policy, rate: u32| {
        let workload = format!("poisson:{rate}").parse().unwrap();
        let scenario = Scenario {
            requests_max: requests,
            duration: Micros(u64::MAX),
            ..Scenario::new(test_bed::catalog(WORKERS), workload)
        };
        BenchCase {
            name,
            policy,
            scenario,
            took: Vec::new(),
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

// === impl BenchCase ===

impl BenchCase {
    fn run_once(&mut self) {
        let clock = Clock::start();
        let report = run(&self.scenario, &self.policy, 1).unwrap();
        self.took.push(clock.stop());
        self.report = Some(report);
    }

    fn print(&self) {
        let report = self.report.as_ref().unwrap();
        let arrivals = report.total.arrivals as f64;
        let per_s = |of: fn(&Elapsed) -> f64| arrivals / median(self.took.iter().map(of));
        println!(
            "{:<17} | {:>10.0} | {:>10.0} | {:>7} | {:>10.2} | {:>6.1}%",
            self.name,
            per_s(|took| took.thread_s),
            per_s(|took| took.wall_s),
            report.windows,
            report.batches.size_mean.unwrap_or_default(),
            100.0 * report.total.in_time_ratio,
        );
    }
}
