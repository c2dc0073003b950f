//! The sweep of the tests, run once.

use std::sync::LazyLock;

use switchyard_core::time::{Micros, Time};
use switchyard_sim::report::{Meta, PolicyMeta, ReportData, SweepAxis};
use switchyard_sim::timeline::Timeline;
use switchyard_sim::{PolicyOutcome, Scenario, SweepPoint, run_observed, sweep};

use crate::policies::{edf, first_come};
use crate::test_bed::{catalog, scenario};

pub(crate) const SEEDS: [u64; 2] = [1, 2];

/// A quiet point and a busy one, under two policies.
static REPORT: LazyLock<ReportData> = LazyLock::new(|| {
    let points = [point(100), point(900)];
    let policies = [edf(), first_come([0, 2], [1, 1], [0, 0])];
    let outcomes = sweep(&points, &policies, &SEEDS, &|| ()).unwrap();
    let catalog = &points[0].scenario.catalog;
    let mut data = ReportData::new(meta(), catalog, outcomes).compared_with("edf");
    for policy in &policies {
        let mut seen = Timeline::new(Time(100_000), Time(160_000));
        run_observed(&points[1].scenario, policy, SEEDS[0], &mut seen).unwrap();
        data = data.with_timeline(&policy.name, &points[1].name, SEEDS[0], seen);
    }
    data
});

pub(crate) fn report() -> ReportData {
    REPORT.clone()
}

pub(crate) fn outcomes() -> Vec<PolicyOutcome> {
    REPORT.runs.clone()
}

fn point(rate: u32) -> SweepPoint {
    SweepPoint {
        name: format!("rate={rate}"),
        scenario: Scenario {
            duration: Micros::from_millis(1_000),
            preload: false,
            ..scenario(catalog(2), &format!("poisson:{rate}"))
        },
    }
}

fn meta() -> Meta {
    Meta {
        title: "A quiet load and a busy one".to_owned(),
        command: "switchyard simulate --policy edf".to_owned(),
        version: "1.2.3".to_owned(),
        date: "2026-11-21".to_owned(),
        workload: "poisson:RATE".to_owned(),
        profile: "by hand".to_owned(),
        profile_hash: "0123456789abcdef0123".to_owned(),
        policies: vec![PolicyMeta {
            policy: "edf".to_owned(),
            label: "edf@0.1.0".to_owned(),
            hash: "fedcba98765432100123".to_owned(),
            settings: "{\"share\":0.5}".to_owned(),
        }],
        seconds: 1.0,
        left_out: Vec::new(),
        seeds: SEEDS.to_vec(),
        axis: Some(SweepAxis {
            name: "rate".to_owned(),
            label: "requests per second".to_owned(),
        }),
        deadline_ms: Some(20.0),
    }
}
