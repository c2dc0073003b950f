//! The share of a core that one scheduler takes at a rate, the simulator's own time included.

use switchyard_core::time::Micros;
use switchyard_sim::{Contender, Scenario, run};

use crate::clock::Clock;
use crate::policies::NextIdle;
use crate::test_bed;

/// Workers of a pool, and requests per second: one of ten pools that share 1,000 workers and 1,000,000
/// requests per second, then one pool of all these workers.
const POINTS: [(usize, u32); 6] = [
    (100, 100_000),
    (1_000, 100_000),
    (1_000, 200_000),
    (1_000, 400_000),
    (1_000, 600_000),
    (1_000, 800_000),
];

pub(crate) fn print(quick: bool) {
    let seconds = if quick { 1 } else { 5 };
    println!("\nshare of a core by requests per second; one window per event; {seconds} virtual s");
    println!("workers | arrivals/s | share of a core | windows/s | mean batch | in time");
    println!("------- | ---------- | --------------- | --------- | ---------- | -------");
    for (workers, rate) in POINTS {
        let workload = format!("poisson:{rate}").parse().unwrap();
        let scenario = Scenario {
            requests_max: u64::from(rate) * seconds,
            duration: Micros(u64::MAX),
            ..Scenario::new(test_bed::catalog(workers), workload)
        };
        let policy = Contender::new("next-idle", NextIdle::on_events);
        let clock = Clock::start();
        let report = run(&scenario, &policy, 1).unwrap();
        let share = clock.stop().thread_s / seconds as f64;
        println!(
            "{workers:>7} | {rate:>10} | {:>14.0}% | {:>9} | {:>10.2} | {:>6.1}%",
            100.0 * share,
            report.windows / seconds,
            report.batches.size_mean.unwrap_or_default(),
            100.0 * report.total.in_time_ratio,
        );
    }
}
