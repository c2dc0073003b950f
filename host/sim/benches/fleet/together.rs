//! Ten pools at once, as in a server: each has a scheduler on a thread of its own, 100 workers and 100,000
//! requests per second.

use switchyard_core::time::Micros;
use switchyard_sim::{Contender, Report, Scenario, run_observed};

use crate::clock::Clock;
use crate::network::{DEATHS, LINKS, Lost};
use crate::policies::NextIdle;
use crate::test_bed;

const POOLS: u64 = 10;
const WORKERS: usize = 100;
const PER_S: u64 = 100_000;

/// The run of one pool.
struct PoolRun {
    report: Report,
    thread_s: f64,
    lost: u64,
}

pub(crate) fn print(quick: bool) {
    let seconds = if quick { 1 } else { 5 };
    println!(
        "\n{POOLS} pools together: {} workers, {} requests/s, {seconds} virtual s, one window per event",
        POOLS as usize * WORKERS,
        POOLS * PER_S
    );
    println!(
        "links, deaths | cores | largest pool's share of a core | lost workers | in time | arrived | ended"
    );
    println!(
        "------------- | ----- | ------------------------------ | ------------ | ------- | ------- | -----"
    );
    for has_faults in [false, true] {
        let threads: Vec<_> = (0..POOLS)
            .map(|seed| std::thread::spawn(move || pool(seed, seconds, has_faults)))
            .collect();
        let runs: Vec<PoolRun> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let seconds = seconds as f64;
        let cores = runs.iter().map(|run| run.thread_s / seconds).sum::<f64>();
        let largest = runs.iter().map(|run| run.thread_s / seconds);
        let total = |of: fn(&PoolRun) -> u64| runs.iter().map(of).sum::<u64>();
        let arrived = total(|run| run.report.total.arrivals);
        println!(
            "{:>13} | {cores:>5.2} | {:>29.0}% | {:>12} | {:>6.1}% | {arrived} | {}",
            if has_faults { "yes" } else { "no" },
            100.0 * largest.fold(0.0, f64::max),
            total(|run| run.lost),
            100.0 * total(|run| run.report.total.in_time) as f64 / arrived as f64,
            total(|run| run.report.total.ended()),
        );
    }
}

fn pool(seed: u64, seconds: u64, has_faults: bool) -> PoolRun {
    let workload = format!("poisson:{PER_S}").parse().unwrap();
    let scenario = Scenario {
        requests_max: PER_S * seconds,
        duration: Micros(u64::MAX),
        deaths: has_faults.then_some(DEATHS),
        links: has_faults.then_some(LINKS),
        ..Scenario::new(test_bed::catalog(WORKERS), workload)
    };
    let policy = Contender::new("next-idle", NextIdle::on_events);
    let (clock, mut lost) = (Clock::start(), Lost::default());
    let report = run_observed(&scenario, &policy, seed, &mut lost).unwrap();
    PoolRun {
        report,
        thread_s: clock.stop().thread_s,
        lost: lost.0,
    }
}
