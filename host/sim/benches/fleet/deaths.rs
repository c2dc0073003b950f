//! A simulated pool of 1,000 workers that die and return, behind links with losses, with batches that
//! fail.

use switchyard_core::time::Micros;
use switchyard_sim::{Contender, Report, Scenario, run_observed};

use crate::clock::{Clock, median};
use crate::network::{DEATHS, LINKS, Lost};
use crate::policies::NextIdle;
use crate::test_bed;

/// Share of the batches that fail.
const FAILING: f64 = 0.001;

pub(crate) fn print(quick: bool) {
    let (requests, turns) = if quick { (200_000, 3) } else { (2_000_000, 5) };
    println!("\n{requests} simulated requests, one window per event, median of {turns} runs");
    println!(
        "workers | arrivals/s | links | deaths | requests/s of a core | windows | in time | ended"
    );
    println!(
        "------- | ---------- | ----- | ------ | -------------------- | ------- | ------- | -----"
    );
    for (workers, rate, has_links, dies) in [
        (10, 1_000, false, false),
        (100, 10_000, false, false),
        (1_000, 100_000, false, false),
        (1_000, 100_000, false, true),
        (1_000, 100_000, true, true),
    ] {
        let scenario = Scenario {
            links: has_links.then_some(LINKS),
            ..scenario(workers, rate, requests, dies)
        };
        let policy = Contender::new("next-idle", NextIdle::on_events);
        let (mut report, mut lost) = (None, Lost::default());
        let times: Vec<f64> = (0..turns)
            .map(|_| {
                lost = Lost::default();
                let clock = Clock::start();
                report = Some(run_observed(&scenario, &policy, 1, &mut lost).unwrap());
                clock.stop().thread_s
            })
            .collect();
        let report: Report = report.unwrap();
        println!(
            "{workers:>7} | {rate:>10} | {:>5} | {:>6} | {:>20.0} | {:>7} | {:>6.1}% | {}",
            if has_links { "yes" } else { "no" },
            lost.0,
            report.total.arrivals as f64 / median(times.into_iter()),
            report.windows,
            100.0 * report.total.in_time_ratio,
            report.total.ended(),
        );
    }
}

fn scenario(workers: usize, rate: u32, requests: u64, dies: bool) -> Scenario {
    let workload = format!("poisson:{rate}").parse().unwrap();
    Scenario {
        requests_max: requests,
        duration: Micros(u64::MAX),
        deaths: dies.then_some(DEATHS),
        failing_batches: if dies { FAILING } else { 0.0 },
        ..Scenario::new(test_bed::catalog(workers), workload)
    }
}
