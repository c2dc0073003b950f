//! Costs of batches: loads, swaps, percentiles, energy.

use std::sync::Arc;

use switchyard_core::cost::{Cost, CostCurve, CostPoint};
use switchyard_core::ids::{AppId, ExitId};
use switchyard_core::profile::Profile;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::timeline::Timeline;
use switchyard_sim::{Quantile, ServiceTimes, run, run_observed};

use crate::policies::first_come;
use crate::test_bed::{LOAD, catalog, loads, row, scenario, single_server};

#[test]
fn a_resident_model_is_loaded_once() {
    let mut cold = scenario(catalog(1), "heart=periodic:50");
    cold.preload = false;
    cold.requests_max = 10;
    let small = first_come([0, 2], [1, 1], [0, 0]);
    let report = run(&cold, &small, 1).unwrap();
    let worker = &report.workers[0];
    assert_eq!((worker.loads, worker.load_us), (1, LOAD.0));
    assert_eq!(worker.busy_us, 10 * 1_000);
    assert_eq!(report.total.latency.max_ms, 1.7);
    cold.preload = true;
    assert_eq!(run(&cold, &small, 1).unwrap().workers[0].loads, 0);
}

/// The same run, batch by batch in an interval.
#[test]
fn a_timeline_shows_the_batches_of_an_interval() {
    let mut cold = scenario(catalog(1), "heart=periodic:50@deadline=500us");
    cold.preload = false;
    cold.requests_max = 10;
    let small = first_come([0, 2], [1, 1], [0, 0]);
    // Arrivals every 20 ms from 20 ms on; the first one runs until 21.7 ms.
    let mut timeline = Timeline::new(Time(21_000), Time(60_000));
    let report = run_observed(&cold, &small, 1, &mut timeline).unwrap();
    assert_eq!(
        report,
        run(&cold, &small, 1).unwrap(),
        "observing changes nothing"
    );
    let bars: Vec<_> = timeline
        .bars
        .iter()
        .map(|b| (b.start.0, b.load.0, b.end.0))
        .collect();
    assert_eq!(bars, [(20_000, 700, 21_700), (40_000, 0, 41_000)]);
    assert_eq!((timeline.violations, timeline.dropped), (2, 0));
}

/// Requests of the length of the profile take 10 ms, those of twice the length 25 ms.
#[test]
fn requests_take_as_long_as_their_length() {
    let mut catalog = (*single_server(10_000)).clone();
    let point = |length, rows| CostPoint {
        length,
        cost: Cost::from_f64(rows),
    };
    let curve = CostCurve::new([point(64, 1.0), point(128, 2.5)]);
    catalog.profile = catalog.profile.with_costs(AppId(0), curve);
    let catalog = Arc::new(catalog);
    let mean_ms = |workload: &str| {
        let mut scenario = scenario(Arc::clone(&catalog), workload);
        scenario.requests_max = 1_000;
        let report = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap();
        report.total.latency.mean_ms
    };
    assert_eq!(
        mean_ms("periodic:10"),
        10.0,
        "as long as those of the profile"
    );
    assert_eq!(mean_ms("periodic:10@length=64"), 10.0);
    assert_eq!(mean_ms("periodic:10@length=128"), 25.0);
    let mixed = mean_ms("periodic:10@length=64:3,128:1");
    assert!((13.0..14.5).contains(&mixed), "{mixed}");
}

#[test]
fn lengths_of_an_app_without_costs_are_refused() {
    let scenario = scenario(single_server(10_000), "periodic:10@length=64");
    let refused = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("no latencies of app heart by length"),
        "{refused}"
    );
}

/// Two models alternate in memory for one: every batch loads.
#[test]
fn too_little_memory_loads_for_every_batch() {
    let mut catalog = catalog(1);
    catalog.workers[0].memory_bytes = 1_999;
    let mut scenario = scenario(catalog, "heart=periodic:50;fall=periodic:50");
    scenario.requests_max = 40;
    let report = run(&scenario, &first_come([0, 2], [1, 1], [0, 0]), 1).unwrap();
    // `small` was resident at the start: it comes first in the catalog.
    assert_eq!(report.workers[0].loads, 39);
    assert_eq!(report.workers[0].load_us, 39 * LOAD.0);
}

#[test]
fn percentiles_bound_the_service_times() {
    let at = |quantile, us| Quantile {
        quantile,
        profile: Profile::new(quantile, [row(0, 0, Some(ExitId(0)), 1, us)], []),
    };
    let mut scenario = scenario(single_server(10_000), "periodic:20");
    scenario.requests_max = 200_000;
    scenario.duration = Micros(u64::MAX);
    let quantiles = vec![at(0.5, 5_000), at(0.95, 10_000), at(0.99, 20_000)];
    scenario.service = ServiceTimes::Percentiles(quantiles);
    let report = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap();
    let latency = &report.total.latency;
    assert!((latency.p50_ms - 5.0).abs() < 0.1, "{latency:?}");
    assert!((latency.p95_ms - 10.0).abs() < 0.4, "{latency:?}");
    assert!((latency.p99_ms - 20.0).abs() < 0.6, "{latency:?}");
    assert!(latency.max_ms <= 20.0, "{latency:?}");
}

#[test]
fn energy_is_summed_if_the_profile_has_it() {
    let mut catalog = (*single_server(10_000)).clone();
    let mut measured = row(0, 0, Some(ExitId(0)), 1, 10_000);
    measured.energy_uj = Some(500_000);
    catalog.profile = Profile::new(0.95, [measured], loads(1));
    let mut scenario = scenario(catalog, "periodic:20");
    scenario.requests_max = 40;
    let report = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap();
    let energy = report.energy.unwrap();
    assert_eq!(energy.total_j, 20.0);
    assert_eq!(energy.per_answer_j, 0.5);
    assert_eq!(energy.answers_per_j, 2.0);
    assert!((energy.edp_js - 0.5 * 0.01).abs() < 1e-9, "{energy:?}");
    assert!((energy.ed2p_js2 - 0.5 * 1e-4).abs() < 1e-9, "{energy:?}");
}

#[test]
fn a_law_with_a_wrong_number_is_refused() {
    let mut scenario = scenario(single_server(10), "periodic:20");
    scenario.service = ServiceTimes::Normal { mean: 0.0, cv: 0.1 };
    let error = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap_err();
    assert_eq!(error.to_string(), "service times: mean: must be positive");
}
