//! Batches of stage ranges with parked activations, and evidence.

use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::Dispatch;
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;
use switchyard_sim::{Contender, run};

use crate::policies::script;
use crate::test_bed::{catalog, row, scenario};

/// The large variant stage by stage, with parked activations between stages.
fn sliced() -> Contender {
    script("sliced", |window, plan| {
        let busy = window.workers.running_variant[0] != switchyard_core::window::IDLE;
        if busy || window.is_empty() {
            return;
        }
        let progress = window.requests.progress.first();
        let (at, from_stage) = progress.map_or((0, 0), |p| (p.index as usize, p.stages_run));
        let dispatch = Dispatch {
            worker: WorkerId(0),
            variant: VariantId(1),
            from_stage,
            to_stage: from_stage + 1,
            exit: (from_stage == 2).then_some(ExitId(1)),
            place: 0,
            size: 0,
        };
        plan.dispatch(dispatch, [RequestId(window.requests.id[at])]);
    })
}

#[test]
fn stages_add_up_and_their_requests_are_pending_again() {
    let mut scenario = scenario(catalog(1), "heart=periodic:100");
    scenario.requests_max = 200;
    let report = run(&scenario, &sliced(), 1).unwrap();
    assert_eq!(report.batches.count, 600);
    assert_eq!(report.workers[0].busy_us, 600 * 2_000);
    let last = report.served.iter().find(|s| s.exit == "stage3").unwrap();
    assert_eq!((last.answered, last.share), (200, 1.0));
    assert_eq!(report.total.latency.max_ms, 6.0);
    assert_eq!(report.total.heavy_share, Some(1.0));
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn a_stage_that_was_not_measured_is_named() {
    let mut catalog = catalog(1);
    let rows: Vec<_> = catalog.profile.rows().collect();
    let whole = (0..3)
        .flat_map(|_| rows.clone())
        .filter(|row| (row.variant, row.from_stage, row.exit) != (VariantId(1), 1, None));
    let mut rows: Vec<_> = whole.collect();
    let mut both = row(1, 0, Some(ExitId(1)), 8, 9_000);
    both.to_stage = 3;
    rows.push(both);
    catalog.profile = Profile::new(0.95, rows, []);
    let mut scenario = scenario(catalog, "heart=periodic:100");
    scenario.requests_max = 5;
    let error = run(&scenario, &sliced(), 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the profile has no latency for kind cpu-1t, variant heart/large, stages [1, 2), exit none, batch 1"
    );
}

/// Answers from evidence as soon as it is there.
fn short_circuit() -> Contender {
    script("short-circuit", |window, plan| {
        for &at in &window.requests.evidence_index {
            plan.answers
                .push(RequestId(window.requests.id[at as usize]));
        }
    })
}

#[test]
fn evidence_comes_after_its_delay() {
    let mut scenario = scenario(catalog(1), "heart=poisson:500");
    scenario.duration = Micros::from_millis(40_000);
    scenario.evidence.delay_us = Micros(5_000);
    let report = run(&scenario, &short_circuit(), 1).unwrap();
    let total = &report.total;
    assert_eq!(total.short_circuited, total.arrivals);
    assert_eq!((total.latency.p50_ms, total.latency.max_ms), (5.0, 5.0));
    assert!((total.accuracy_profiled.unwrap() - 0.6).abs() < 1e-9);
    // Recall 0.7 for three quarters of the requests, 0.3 for the rest.
    for got in [total.accuracy_expected, total.accuracy_sampled] {
        assert!((got.unwrap() - 0.6).abs() < 0.01, "{got:?}");
    }
    assert_eq!(report.batches.count, 0);
}

#[test]
fn evidence_too_late_counts_as_a_violation() {
    let mut scenario = scenario(catalog(1), "heart=poisson:500");
    scenario.duration = Micros::from_millis(2_000);
    scenario.evidence.delay_us = Micros(30_000);
    let report = run(&scenario, &short_circuit(), 1).unwrap();
    assert_eq!(report.total.late, report.total.arrivals);
    assert_eq!(report.total.lateness_ms, Some(10.0));
    // Sigmoid at x = 0.5 leaves half (SneakPeek eq. 2).
    let ratio = report.total.utility / report.total.accuracy_expected.unwrap();
    assert!((ratio - 0.5).abs() < 1e-9, "{ratio}");
}
