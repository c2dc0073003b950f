//! The sweep that the tests report on, run once.

use std::sync::LazyLock;

use switchyard_core::time::{Micros, Time};
use switchyard_sim::report::{Axis, Meta, ReportData};
use switchyard_sim::timeline::Timeline;
use switchyard_sim::{Outcome, Point, Scenario, run_observed, sweep};

use crate::policies::{edf, first_come};
use crate::yard::{catalog, scenario};

pub(crate) const SEEDS: [u64; 2] = [1, 2];

/// A quiet point and a busy one, under two policies.
static REPORT: LazyLock<ReportData> = LazyLock::new(|| {
    let points = [point(100), point(900)];
    let policies = [edf(), first_come([0, 2], [1, 1], [0, 0])];
    let outcomes = sweep(&points, &policies, &SEEDS, &|| ()).unwrap();
    let mut data = ReportData::new(meta(), &points[0].scenario.catalog, outcomes);
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

pub(crate) fn outcomes() -> Vec<Outcome> {
    REPORT.runs.clone()
}

fn point(rate: u32) -> Point {
    Point {
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
        title: "A quiet yard and a busy one".to_owned(),
        command: "switchyard simulate --policy edf".to_owned(),
        date: "2026-11-21".to_owned(),
        workload: "poisson:RATE".to_owned(),
        profile: "by hand".to_owned(),
        seconds: 1.0,
        seeds: SEEDS.to_vec(),
        axis: Some(Axis {
            name: "rate".to_owned(),
            label: "requests per second".to_owned(),
        }),
        deadline_ms: Some(20.0),
    }
}
