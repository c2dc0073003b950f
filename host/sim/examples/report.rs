//! A sweep of native policies, and its report: `cargo run --example report -- [DIR] [--single]`.
//!
//! Writes `DIR/index.html` and `DIR/report.json`; `--single` runs one point instead of a sweep.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

#[path = "report/policies.rs"]
mod policies;
#[path = "report/test_bed.rs"]
mod test_bed;

use std::path::PathBuf;

use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::report::{
    ComparisonTable, Meta, PolicyMeta, ReportData, SweepAxis, comparison_table, differences, html,
};
use switchyard_sim::timeline::Timeline;
use switchyard_sim::{Contender, Scenario, SweepPoint, run_observed, sweep};

use policies::FirstCome;

const WORKLOAD: &str = "heart=gamma:260,0.6;fall=poisson:180";
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

fn main() {
    let is_single = std::env::args().any(|arg| arg == "--single");
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let folder = PathBuf::from(folder.unwrap_or_else(|| "target/report".to_owned()));
    let points = points(if is_single { &["1"] } else { &LOADS }, is_single);
    let policies = contenders();
    let outcomes = sweep(&points, &policies, &SEEDS, &|| ()).unwrap();
    print(&comparison_table(&outcomes));
    let mut data = ReportData::new(meta(is_single), &points[0].scenario.catalog, outcomes)
        .compared_with("edf");
    for matrix in differences(&data.comparisons) {
        println!(
            "\n{}\npolicy\t{}",
            matrix.title(),
            matrix.columns.join("\t")
        );
        for row in &matrix.rows {
            println!(
                "{}\t{}",
                row.policy,
                row.cells().collect::<Vec<_>>().join("\t")
            );
        }
    }
    let watched = &points[points.len() / 2];
    for policy in &policies {
        let mut seen = Timeline::new(Time(10_000_000), Time(10_300_000));
        run_observed(&watched.scenario, policy, SEEDS[0], &mut seen).unwrap();
        data = data.with_timeline(&policy.name, &watched.name, SEEDS[0], seen);
    }
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("index.html"), html(&data)).unwrap();
    std::fs::write(
        folder.join("report.json"),
        serde_json::to_vec(&data).unwrap(),
    )
    .unwrap();
    println!("{}", folder.join("index.html").display());
}

const LOADS: [&str; 7] = ["0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5"];

fn points(loads: &[&str], is_single: bool) -> Vec<SweepPoint> {
    let base = Scenario {
        duration: Micros::from_millis(30_000),
        ..Scenario::new(test_bed::catalog(8), WORKLOAD.parse().unwrap())
    };
    let point = |load: &&str| SweepPoint {
        name: if is_single {
            String::new()
        } else {
            format!("load={load}")
        },
        scenario: Scenario {
            workload: base.workload.scaled(load.parse().unwrap()).unwrap(),
            ..base.clone()
        },
    };
    loads.iter().map(point).collect()
}

fn contenders() -> Vec<Contender> {
    vec![
        Contender::new("edf", EarliestDeadlineFirst::default),
        Contender::new("fcfs accurate", || FirstCome::new(1.0, 8)),
        Contender::new("fcfs middle", || FirstCome::new(0.4, 8)),
        Contender::new("fcfs unbatched", || FirstCome::new(0.4, 1)),
    ]
}

fn meta(is_single: bool) -> Meta {
    Meta {
        title: "Native policies under load".to_owned(),
        command: "cargo run --example report".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        policies: contenders().iter().map(policy_meta).collect(),
        date: "2026-11-21".to_owned(),
        workload: WORKLOAD.to_owned(),
        profile: "made up for this example".to_owned(),
        seconds: 30.0,
        seeds: SEEDS.to_vec(),
        axis: (!is_single).then(|| SweepAxis {
            name: "load".to_owned(),
            label: "load, times the workload's rates".to_owned(),
        }),
        deadline_ms: Some(60.0),
        ..Meta::default()
    }
}

fn policy_meta(contender: &Contender) -> PolicyMeta {
    PolicyMeta {
        policy: contender.name.clone(),
        label: format!("{}@0.1.0", contender.name),
        ..PolicyMeta::default()
    }
}

fn print(table: &ComparisonTable) {
    println!(
        "point\tpolicy\t{}",
        ComparisonTable::headings().collect::<Vec<_>>().join("\t")
    );
    for row in &table.rows {
        println!("{}\t{}\t{}", row.point, row.policy, row.cells().join("\t"));
    }
}
