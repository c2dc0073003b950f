//! Reports against numbers worked out by hand.

use switchyard_core::time::Micros;
use switchyard_sim::overhead::{Overhead, Timed};
use switchyard_sim::{Report, run};

use crate::policies::{edf, first_come};
use crate::test_bed::{catalog, scenario, single_server};

/// One request every 20 ms, 10 ms of work, deadline 8 ms: all late by 2 ms.
#[test]
fn lateness_by_hand() {
    let mut scenario = scenario(single_server(10_000), "periodic:50@deadline=8ms");
    scenario.requests_max = 1_000;
    scenario.duration = Micros(u64::MAX);
    let report = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap();
    let total = &report.total;
    assert_eq!((total.late, total.in_time), (1_000, 0));
    assert_eq!((total.late_ratio, total.violation_ratio), (1.0, 1.0));
    assert_eq!((total.violation_s, total.lateness_ms), (2.0, Some(2.0)));
    assert_eq!(
        total.accuracy_per_satisfied, None,
        "no request was satisfied"
    );
    assert_eq!((total.goodput_ratio, total.goodput_per_s), (0.0, 0.0));
    // x = 0.25: 1 - 1 / (1 + (0.25 / 0.75)^-3) = 27 / 28.
    let ratio = total.utility / total.accuracy_expected.unwrap();
    assert!((ratio - 27.0 / 28.0).abs() < 1e-9, "{ratio}");
    assert!((total.p99_over_deadline.unwrap() - 1.25).abs() < 0.002);
    assert_eq!(report.simulated_us, Micros(1_000 * 20_000 + 10_000));
}

#[test]
fn accuracies_follow_the_class_mix() {
    let mut scenario = scenario(catalog(4), "heart=poisson:300");
    scenario.duration = Micros::from_millis(100_000);
    let report = run(&scenario, &first_come([0, 2], [1, 1], [0, 0]), 1).unwrap();
    let total = &report.total;
    assert_eq!(
        total.accuracy_profiled.map(|a| (a * 1e9).round()),
        Some(0.7e9)
    );
    // Recall 0.7 and 0.6 at frequencies 0.75 and 0.25.
    for got in [total.accuracy_expected, total.accuracy_sampled] {
        assert!((got.unwrap() - 0.675).abs() < 0.01, "{got:?}");
    }
    assert_eq!(total.heavy_share, Some(0.0), "`large` is the heavy one");
    let goodput = total.goodput_per_s / 300.0;
    assert!((goodput - 1.0).abs() < 0.02, "{goodput}");
}

#[test]
fn apps_have_equal_weights_in_the_mean_over_apps() {
    let mut scenario = scenario(catalog(4), "heart=periodic:30;fall=periodic:10");
    scenario.duration = Micros::from_millis(10_000);
    let report = run(&scenario, &first_come([0, 2], [1, 1], [0, 0]), 1).unwrap();
    // 0.7 and 0.9, once three to one and once one to one.
    let over_requests = report.total.accuracy_profiled.unwrap();
    assert!((over_requests - 0.75).abs() < 0.001, "{over_requests}");
    let over_apps = report.accuracy_app_mean().unwrap();
    assert!((over_apps - 0.8).abs() < 1e-9, "{over_apps}");
}

#[test]
fn the_worst_tail_is_that_of_one_app() {
    let mut scenario = scenario(
        catalog(4),
        "heart=periodic:30@deadline=8ms;fall=periodic:10@deadline=2s",
    );
    scenario.duration = Micros::from_millis(10_000);
    let report = run(&scenario, &first_come([0, 2], [1, 1], [0, 0]), 1).unwrap();
    let tails = report
        .apps
        .iter()
        .map(|app| app.summary.p99_over_deadline.unwrap());
    let tails: Vec<f64> = tails.collect();
    assert!(tails[0] > 2.0 * tails[1], "{tails:?}");
    assert_eq!(report.p99_over_deadline_app_max(), Some(tails[0]));
}

#[test]
fn phases_are_reported_separately() {
    let mut scenario = scenario(catalog(2), "heart=phases:100x1s,900x1s");
    scenario.duration = Micros::from_millis(60_000);
    let report = run(&scenario, &edf(), 1).unwrap();
    let names: Vec<&str> = report.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["0:phases[0]", "0:phases[1]"]);
    let quiet = report.phases[0].summary.arrivals as f64 / 30.0;
    let busy = report.phases[1].summary.arrivals as f64 / 30.0;
    assert!(
        (quiet - 100.0).abs() < 6.0 && (busy - 900.0).abs() < 20.0,
        "{quiet} {busy}"
    );
    let accuracy = |phase: usize| report.phases[phase].summary.accuracy_profiled.unwrap();
    assert!(accuracy(0) > accuracy(1), "load costs accuracy");
}

#[test]
fn reports_survive_json() {
    let mut scenario = scenario(catalog(2), "poisson:300");
    scenario.duration = Micros::from_millis(1_000);
    let report = run(&scenario, &edf(), 1).unwrap();
    let json = serde_json::to_string(&report).unwrap();
    let back: Report = serde_json::from_str(&json).unwrap();
    // Counts come back as they were; reading JSON may round the last bit of a fraction.
    assert_eq!(
        (back.batches.sizes, back.ledger),
        (report.batches.sizes, report.ledger)
    );
    assert_eq!(back.total.arrivals, report.total.arrivals);
    assert!((back.total.utility - report.total.utility).abs() < 1e-12);
}

/// The measurement of host time does not change a run.
#[test]
fn timing_a_policy_does_not_change_its_run() {
    let mut scenario = scenario(catalog(2), "poisson:300");
    scenario.duration = Micros::from_millis(1_000);
    let overhead = Overhead::default();
    let timed = switchyard_sim::Contender {
        name: "timed".to_owned(),
        foresight: None,
        make: std::sync::Arc::new({
            let overhead = overhead.clone();
            move |catalog| {
                let inner = (edf().make)(catalog)?;
                let mut ticks_ns = 0;
                let clock = move || {
                    ticks_ns += 2_500;
                    ticks_ns
                };
                Ok(Box::new(Timed::new(inner, clock, overhead.clone())))
            }
        }),
    };
    let report = run(&scenario, &timed, 1).unwrap();
    assert_eq!(report, run(&scenario, &edf(), 1).unwrap());
    let times = overhead.times();
    assert_eq!((times.windows, times.mean_us), (report.windows, 2.5));
}
