//! The share of a core that one scheduler takes at a rate, the simulator's own time included.

use std::path::Path;

use switchyard_core::time::Micros;
use switchyard_sim::plot::{Chart, LineChart, LinePoint, LineSeries, Scale, SeriesId, stacked};
use switchyard_sim::{Contender, Scenario, run};

use crate::clock::Clock;
use crate::network::{DEATHS, LINKS};
use crate::policies::NextIdle;
use crate::test_bed;

/// One scheduler: workers, whether they have links and die, and its rates in requests per second.
struct Curve {
    name: &'static str,
    workers: usize,
    has_faults: bool,
    rates: &'static [u32],
}

/// Every 100 workers have time for 160,000 requests per second.
const CURVES: [Curve; 3] = [
    Curve {
        name: "100 workers",
        workers: 100,
        has_faults: false,
        rates: &[25_000, 50_000, 100_000, 150_000],
    },
    Curve {
        name: "1,000 workers",
        workers: 1_000,
        has_faults: false,
        rates: &[50_000, 100_000, 200_000, 400_000, 600_000, 800_000],
    },
    Curve {
        name: "1,000 with faults",
        workers: 1_000,
        has_faults: true,
        rates: &[50_000, 100_000, 200_000, 400_000, 600_000, 800_000],
    },
];

pub(crate) fn print(quick: bool, plot: Option<&Path>) {
    let seconds = if quick { 1 } else { 5 };
    println!("\nshare of a core by requests per second; one window per event; {seconds} virtual s");
    println!("scheduler         | arrivals/s | share of a core | windows/s | mean batch | in time");
    println!("----------------- | ---------- | --------------- | --------- | ---------- | -------");
    let mut series = Vec::new();
    for (id, curve) in CURVES.iter().enumerate() {
        let points = curve.points(seconds);
        match saturates(&points) {
            Some(rate) => println!(
                "{:<17} | one whole core at {rate:.0} requests/s",
                curve.name
            ),
            None => println!("{:<17} | below one core at all these rates", curve.name),
        }
        let points = points.iter().map(|&(rate, share)| {
            let tip = format!("{rate} requests/s: {:.0} %", 100.0 * share);
            LinePoint::new(f64::from(rate) / 1e3, 100.0 * share).with_tip(tip)
        });
        series.push(LineSeries::new(SeriesId(id), curve.name, points));
    }
    if let Some(plot) = plot {
        std::fs::write(plot, drawn(series)).unwrap();
        eprintln!("plot: {}", plot.display());
    }
}

/// The rate at which a line through the points reaches a whole core.
fn saturates(points: &[(u32, f64)]) -> Option<f64> {
    let crossing = points.windows(2).find(|pair| pair[1].1 >= 1.0)?;
    let [(from, low), (to, high)] = crossing else {
        return None;
    };
    let into = (1.0 - low) / (high - low);
    Some(f64::from(*from) + into * f64::from(to - from))
}

fn drawn(series: Vec<LineSeries>) -> String {
    let values = series.iter().flat_map(|series| &series.points);
    let values: Vec<f64> = values.map(|point| point.y).collect();
    let chart = LineChart {
        x_title: "thousand requests per second".to_owned(),
        y_title: "percent of a core".to_owned(),
        x: Scale::linear(0.0, 800.0),
        y: Scale::around(values, true, 4),
        series,
        names: true,
        ..LineChart::default()
    };
    stacked("Time of one scheduler", &[("", &chart)]).standalone(&chart.in_words())
}

// === impl Curve ===

impl Curve {
    /// Each rate with its share of a core.
    fn points(&self, seconds: u64) -> Vec<(u32, f64)> {
        let point = |&rate: &u32| (rate, self.point(rate, seconds));
        self.rates.iter().map(point).collect()
    }

    fn point(&self, rate: u32, seconds: u64) -> f64 {
        let workload = format!("poisson:{rate}").parse().unwrap();
        let scenario = Scenario {
            requests_max: u64::from(rate) * seconds,
            duration: Micros(u64::MAX),
            deaths: self.has_faults.then_some(DEATHS),
            links: self.has_faults.then_some(LINKS),
            ..Scenario::new(test_bed::catalog(self.workers), workload)
        };
        let policy = Contender::new("next-idle", NextIdle::on_events);
        let clock = Clock::start();
        let report = run(&scenario, &policy, 1).unwrap();
        let share = clock.stop().thread_s / seconds as f64;
        println!(
            "{:<17} | {rate:>10} | {:>14.0}% | {:>9} | {:>10.2} | {:>6.1}%",
            self.name,
            100.0 * share,
            report.windows / seconds,
            report.batches.size_mean.unwrap_or_default(),
            100.0 * report.total.in_time_ratio,
        );
        share
    }
}
