//! A run is a function of scenario, policy and seed.

use proptest::prelude::*;
use switchyard_core::time::Micros;
use switchyard_sim::{Scenario, ServiceTimes, SweepPoint, run, sweep};

use crate::policies::{edf, first_come};
use crate::test_bed::{catalog, scenario};

/// A scenario with every kind of draw.
fn busy() -> Scenario {
    let spec = "heart=gamma:300,0.5@deadline=normal:15ms,5ms;*=mmpp:200,20,3,1;burst:50,9x200ms";
    let mut scenario = scenario(catalog(3), spec);
    scenario.duration = Micros::from_millis(5_000);
    scenario.service = ServiceTimes::LogNormal { mean: 0.8, cv: 0.4 };
    scenario.evidence.jitter_us = Micros(2_000);
    scenario
}

#[test]
fn the_same_seed_gives_the_same_report_bit_for_bit() {
    let json = |seed| serde_json::to_string(&run(&busy(), &edf(), seed).unwrap()).unwrap();
    let first = json(1);
    assert_eq!(first, json(1));
    assert_ne!(first, json(2), "another seed must change the report");
}

#[test]
fn policies_are_compared_on_the_same_arrivals() {
    let points = [SweepPoint {
        name: "busy".to_owned(),
        scenario: busy(),
    }];
    let fast = first_come([0, 2], [1, 1], [0, 0]);
    let outcomes = sweep(&points, &[edf(), fast], &[1, 2, 3], &|| ()).unwrap();
    assert_eq!(outcomes.len(), 2);
    for (one, two) in outcomes[0].reports.iter().zip(&outcomes[1].reports) {
        let arrivals = |report: &switchyard_sim::Report| -> Vec<u64> {
            let parts = report.apps.iter().chain(&report.phases);
            parts.map(|part| part.summary.arrivals).collect()
        };
        assert_eq!(one.seed, two.seed);
        assert_eq!(arrivals(one), arrivals(two));
        assert_ne!(one.total, two.total);
    }
    let utility = outcomes[0].estimates.get("utility").unwrap();
    assert_eq!(utility.runs, 3);
    assert!(utility.half_width.unwrap() > 0.0);
}

#[test]
fn every_app_and_phase_has_its_estimates() {
    let points = [SweepPoint {
        name: "busy".to_owned(),
        scenario: busy(),
    }];
    let seeds = [1, 2, 3, 4];
    let outcome = &sweep(&points, &[edf()], &seeds, &|| ()).unwrap()[0];
    for (estimates, parts) in [
        (&outcome.apps, 0..2),
        (&outcome.phases, 0..outcome.reports[0].phases.len()),
    ] {
        assert_eq!(estimates.len(), parts.len());
        for at in parts {
            let values = outcome.reports.iter().map(|report| {
                let parts = [&report.apps, &report.phases][usize::from(estimates.len() > 2)];
                (parts[at].name.as_str(), parts[at].summary.utility)
            });
            let (names, values): (Vec<_>, Vec<_>) = values.unzip();
            assert!(names.iter().all(|name| *name == estimates[at].name));
            let utility = estimates[at].estimates.get("utility");
            assert_eq!(utility, switchyard_sim::metrics::Estimate::of(&values));
            assert!(utility.unwrap().half_width.is_some());
        }
    }
}

#[test]
fn a_sweep_in_parallel_is_the_runs_one_by_one() {
    let points: Vec<SweepPoint> = [100, 300]
        .map(|load| SweepPoint {
            name: format!("load={load}"),
            scenario: Scenario {
                duration: Micros::from_millis(2_000),
                ..scenario(catalog(2), &format!("poisson:{load}"))
            },
        })
        .to_vec();
    let outcomes = sweep(&points, &[edf()], &[5, 4], &|| ()).unwrap();
    let names: Vec<&str> = outcomes.iter().map(|o| o.point.as_str()).collect();
    assert_eq!(names, ["load=100", "load=300"]);
    for (outcome, point) in outcomes.iter().zip(&points) {
        let alone = [5, 4].map(|seed| run(&point.scenario, &edf(), seed).unwrap());
        assert_eq!(outcome.reports, alone);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_seed_repeats(seed in any::<u64>()) {
        let mut scenario = busy();
        scenario.duration = Micros::from_millis(300);
        prop_assert_eq!(run(&scenario, &edf(), seed), run(&scenario, &edf(), seed));
    }
}

/// Pinned bits of a run that uses every law of arrivals, deadlines and service: the same on
/// every machine. They change only with the draws, or with the core's behaviour under this policy.
#[test]
fn a_run_is_the_same_on_every_machine() {
    let mut scenario = busy();
    scenario.service = ServiceTimes::Normal { mean: 0.9, cv: 0.3 };
    let report = run(&scenario, &first_come([1, 2], [3, 1], [1, 0]), 42).unwrap();
    let total = &report.total;
    let bits = [
        total.arrivals,
        total.in_time,
        report.simulated_us.0,
        report.workers.iter().map(|worker| worker.busy_us).sum(),
        total.utility.to_bits(),
        total.latency.mean_ms.to_bits(),
    ];
    let pinned = [
        2_616,
        1_890,
        5_013_601,
        11_857_501,
        4_605_266_838_949_533_668,
        4_622_859_178_389_869_597,
    ];
    assert_eq!(bits, pinned);
}
