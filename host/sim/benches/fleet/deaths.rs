//! A simulated pool of 1,000 workers that die and return, with batches that fail.

use switchyard_core::ids::WorkerId;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::{Contender, Outage, Report, Scenario, run};

use crate::clock::{Clock, median};
use crate::policies::NextIdle;
use crate::test_bed;

/// Of 1,000 workers one dies every 5 ms and returns after half a second: a tenth of them is away.
const DIES_EVERY: Micros = Micros::from_millis(5);
const AWAY: Micros = Micros::from_millis(500);

/// Share of the batches that fail.
const FAILING: f64 = 0.001;

pub(crate) fn print(quick: bool) {
    let (requests, turns) = if quick { (200_000, 3) } else { (2_000_000, 5) };
    println!("\n{requests} simulated requests, one window per event, median of {turns} runs");
    println!("workers | arrivals/s | deaths | requests/s of a core | windows | in time | ended");
    println!("------- | ---------- | ------ | -------------------- | ------- | ------- | -------");
    for (workers, rate, dies) in [
        (10, 1_000, false),
        (100, 10_000, false),
        (1_000, 100_000, false),
        (1_000, 100_000, true),
    ] {
        let scenario = scenario(workers, rate, requests, dies);
        let policy = Contender::new("next-idle", NextIdle::on_events);
        let mut report = None;
        let times: Vec<f64> = (0..turns)
            .map(|_| {
                let clock = Clock::start();
                report = Some(run(&scenario, &policy, 1).unwrap());
                clock.stop().thread_s
            })
            .collect();
        let report: Report = report.unwrap();
        println!(
            "{workers:>7} | {rate:>10} | {:>6} | {:>20.0} | {:>7} | {:>6.1}% | {}",
            scenario.outages.len(),
            report.total.arrivals as f64 / median(times.into_iter()),
            report.windows,
            100.0 * report.total.in_time_ratio,
            report.total.ended(),
        );
    }
}

fn scenario(workers: usize, rate: u32, requests: u64, dies: bool) -> Scenario {
    let workload = format!("poisson:{rate}").parse().unwrap();
    let length = Micros(requests * 1_000_000 / u64::from(rate));
    let outages = (1..).map(|n| {
        let from = Time(n * DIES_EVERY.0);
        Outage {
            // Every worker in turn, in an order without neighbours.
            worker: WorkerId((n * 7_919 % workers as u64) as u32),
            from,
            to: from + AWAY,
        }
    });
    let outages = outages.take_while(|outage| dies && outage.from < Time::ZERO + length);
    Scenario {
        requests_max: requests,
        duration: Micros(u64::MAX),
        outages: outages.collect(),
        failing_batches: if dies { FAILING } else { 0.0 },
        ..Scenario::new(test_bed::catalog(workers), workload)
    }
}
