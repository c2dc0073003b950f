//! Against the formulas of queueing theory.

use switchyard_core::time::Micros;
use switchyard_sim::{Report, Scenario, ServiceTimes, run};

use crate::policies::first_come;
use crate::test_bed::{catalog, scenario, single_server};

/// 80 requests per second for one server that takes 10 ms: load 0.8.
fn at_load_80(service: ServiceTimes) -> Report {
    let scenario = Scenario {
        service,
        requests_max: 400_000,
        duration: Micros(u64::MAX),
        ..scenario(single_server(10_000), "poisson:80@deadline=10s")
    };
    run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap()
}

fn close(got: f64, want: f64, tolerance: f64) {
    assert!((got / want - 1.0).abs() < tolerance, "{got} is not {want}");
}

/// Pollaczek-Khinchine with deterministic service: rho * D / (2 * (1 - rho)) = 20 ms.
#[test]
fn the_wait_of_an_m_d_1_queue() {
    let report = at_load_80(ServiceTimes::Profiled);
    close(report.total.queued_ms.unwrap(), 20.0, 0.04);
    close(report.total.latency.mean_ms, 30.0, 0.03);
    close(report.utilisation().unwrap(), 0.8, 0.01);
}

/// M/M/1: rho / (mu - lambda) = 40 ms in the queue; the sojourn is exponential with mean
/// 50 ms, so that its median is 50 ln 2 and its 95th percentile 50 ln 20.
#[test]
fn the_wait_of_an_m_m_1_queue() {
    let report = at_load_80(ServiceTimes::Exponential { mean: 1.0 });
    close(report.total.queued_ms.unwrap(), 40.0, 0.06);
    close(report.total.latency.p50_ms, 50.0 * 2f64.ln(), 0.06);
    close(report.total.latency.p95_ms, 50.0 * 20f64.ln(), 0.06);
}

/// General service: the wait grows with (1 + cv^2) / 2.
#[test]
fn the_wait_grows_with_the_variance_of_service() {
    let report = at_load_80(ServiceTimes::LogNormal { mean: 1.0, cv: 1.5 });
    close(
        report.total.queued_ms.unwrap(),
        40.0 * (1.0 + 2.25) / 2.0,
        0.1,
    );
}

/// No request waits in a D/D/1 queue below full load.
#[test]
fn periodic_arrivals_never_wait() {
    let scenario = scenario(single_server(10_000), "periodic:99");
    let report = run(&scenario, &first_come([0, 0], [1, 1], [0, 0]), 1).unwrap();
    assert_eq!(report.total.queued_ms, Some(0.0));
    assert_eq!(report.total.antt, Some(1.0));
    assert_eq!(report.total.in_time, report.total.arrivals);
}

/// Work is conserved: utilisation is the offered load in any order of service.
#[test]
fn utilisation_is_the_offered_load() {
    let mut scenario = scenario(catalog(4), "heart=poisson:400;fall=poisson:400");
    scenario.duration = Micros::from_millis(100_000);
    let report = run(&scenario, &first_come([0, 2], [1, 1], [0, 0]), 1).unwrap();
    // 400/s of 1 ms and 400/s of 3 ms over 4 workers.
    close(report.utilisation().unwrap(), 0.4, 0.02);
}
