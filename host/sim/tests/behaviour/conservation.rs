//! Every arrival ends exactly once under any policy.

use std::sync::Arc;

use proptest::prelude::*;
use switchyard_core::catalog::Late;
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::Dispatch;
use switchyard_core::policy::{FaultKind, Policy};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::IDLE;
use switchyard_sim::{Contender, LinkTimes, Outage, RandomDeaths, Report, ServiceTimes, run};

use crate::chaos::{Chaos, Useless};
use crate::policies::edf;
use crate::test_bed::{catalog, scenario};

fn check(report: &Report) {
    let total = &report.total;
    assert_eq!(total.ended(), total.arrivals);
    let by_app: u64 = report.apps.iter().map(|app| app.summary.ended()).sum();
    assert_eq!(by_app, total.arrivals);
    let by_phase: u64 = report
        .phases
        .iter()
        .map(|phase| phase.summary.ended())
        .sum();
    assert!(report.phases.is_empty() || by_phase == total.arrivals);
    assert_eq!(report.ledger.values().sum::<u64>(), total.arrivals);
    let served: u64 = report.served.iter().map(|served| served.answered).sum();
    assert_eq!(served + total.short_circuited, total.answered());
    let shares = [total.utility, total.goodput_ratio, total.violation_ratio];
    assert!(
        shares.iter().all(|share| (0.0..=1.0).contains(share)),
        "{shares:?}"
    );
    let in_time = total.in_time_ratio + total.violation_ratio;
    assert!((in_time - 1.0).abs() < 1e-9, "{in_time}");
}

fn workload() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "poisson:400",
        "*=window:4x20ms@deadline=slo*0.5",
        "heart=gamma:500,0.3;fall=erlang:200,3",
        "mmpp:900,10,5,5@mix=heart:3,fall:1",
        "phases:600x100ms,0x50ms@deadline=normal:10ms,8ms",
        "burst:0,40x100ms@deadline=3ms",
        "periodic:333@deadline=100us",
    ])
}

fn service() -> impl Strategy<Value = ServiceTimes> {
    prop::sample::select(vec![
        ServiceTimes::Profiled,
        ServiceTimes::Normal { mean: 0.9, cv: 0.5 },
        ServiceTimes::LogNormal { mean: 1.0, cv: 2.0 },
        ServiceTimes::Exponential { mean: 1.5 },
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_arrival_ends_once(
        spec in workload(),
        service in service(),
        hostility in 0.0..1.0f64,
        preload in any::<bool>(),
        memory_bytes in 1_000..3_000u64,
        failing in prop::sample::select(vec![0.0, 0.01, 0.3]),
        away_us in prop::collection::vec((0..2u32, 0..600_000u64, 1..300_000u64), 0..4),
        links in prop::option::of((0..20_000u64, 0..20_000u64, 0.0..0.5f64, 0..300_000u64)),
        deaths in prop::option::of((1..400_000u64, 1..100_000u64)),
        outstanding in 1..3u32,
        seed in any::<u64>(),
    ) {
        let mut catalog = catalog(2);
        for worker in &mut catalog.workers {
            worker.memory_bytes = memory_bytes;
            worker.outstanding = outstanding;
        }
        let mut scenario = scenario(catalog, spec);
        scenario.links = links.map(|(delay_us, jitter_us, loss, resend_us)| LinkTimes {
            delay_us: Micros(delay_us),
            jitter_us: Micros(jitter_us),
            loss,
            resend_us: Micros(resend_us),
        });
        scenario.deaths = deaths.map(|(lives_us, away_us)| RandomDeaths {
            lives_us: Micros(lives_us),
            away_us: Micros(away_us),
        });
        scenario.duration = Micros::from_millis(600);
        scenario.drain_max = Micros::from_millis(5_000);
        scenario.service = service;
        scenario.preload = preload;
        let outage = |(worker, from_us, length_us)| Outage {
            worker: WorkerId(worker),
            from: Time(from_us),
            to: Time(from_us + length_us),
        };
        scenario.outages = away_us.into_iter().map(outage).collect();
        scenario.failing_batches = failing;
        scenario.scheduler.pending_max = 64;
        let chaos = Contender {
            name: "chaos".to_owned(),
            make: Arc::new(move |catalog| {
                Ok(Box::new(Chaos::new(seed, hostility, catalog)) as Box<dyn Policy>)
            }),
            foresight: None,
        };
        check(&run(&scenario, &chaos, seed).unwrap());
    }
}

/// One in a hundred batches fails: far fewer requests do, since each is tried again.
#[test]
fn requests_of_failed_batches_are_tried_again() {
    let mut scenario = scenario(catalog(4), "poisson:400");
    scenario.duration = Micros::from_millis(20_000);
    scenario.failing_batches = 0.01;
    let report = run(&scenario, &edf(), 1).unwrap();
    check(&report);
    let failed = report.ledger.get("failed").copied().unwrap_or(0);
    assert!(
        failed * 1_000 < report.total.arrivals,
        "{:?}",
        report.ledger
    );
    assert!(report.total.arrivals > 5_000, "{:?}", report.ledger);
}

/// Runs the first stage of a request, parks it, and goes on with the rest; one batch a window.
fn slicer() -> Contender {
    crate::policies::script("slicer", |window, plan| {
        let up = window.workers.up.iter().position(|up| *up == 1);
        let Some(worker) = up else { return };
        for (i, &id) in (0..).zip(&window.requests.id) {
            let parked = window.requests.progress.iter().find(|p| p.index == i);
            let (worker, from, to, exit) = match parked {
                None => (WorkerId(worker as u32), 0, 1, None),
                Some(p) => (p.worker, p.stages_run, 3, Some(ExitId(1))),
            };
            if window.workers.queued[worker.index()] > 0 || !plan.dispatches.is_empty() {
                return;
            }
            let dispatch = Dispatch {
                worker,
                variant: VariantId(1),
                from_stage: from,
                to_stage: to,
                exit,
                place: u32::MAX,
                size: 0,
            };
            plan.dispatch(dispatch, [RequestId(id)]);
        }
    })
}

/// A worker with parked requests goes away: they start over elsewhere, and that is no violation.
#[test]
fn parked_requests_of_a_lost_worker_start_over() {
    let slicer = slicer();
    let mut scenario = scenario(catalog(2), "heart=periodic:120");
    scenario.duration = Micros::from_millis(500);
    scenario.outages = (1..8)
        .map(|n| Outage {
            worker: WorkerId(n % 2),
            from: Time(u64::from(n) * 61_000),
            to: Time(u64::from(n) * 61_000 + 20_000),
        })
        .collect();
    let report = run(&scenario, &slicer, 1).unwrap();
    check(&report);
    assert!(report.total.answered() > 50, "{:?}", report.ledger);
}

/// Batches that take ten thousand times as long as the profile says: their workers count as lost,
/// their requests go on elsewhere, and they end late.
#[test]
fn overdue_batches_lose_no_request() {
    let mut scenario = scenario(catalog(3), "heart=periodic:2@deadline=30s");
    scenario.duration = Micros::from_millis(30_000);
    scenario.service = ServiceTimes::Exponential { mean: 5_000.0 };
    for contender in [edf(), slicer()] {
        let report = run(&scenario, &contender, 1).unwrap();
        check(&report);
        assert!(report.ledger["failed"] > 0, "{:?}", report.ledger);
    }
}

#[test]
fn a_policy_that_never_decides_loses_nothing() {
    let mut scenario = scenario(catalog(2), "poisson:200");
    scenario.duration = Micros::from_millis(3_000);
    let report = run(&scenario, &Contender::new("useless", Useless::silent), 1).unwrap();
    check(&report);
    assert!(report.faults["starved"] > 0, "{:?}", report.faults);
}

/// The second worker cannot hold the variant of `fall`, and is idle while the first one is busy.
#[test]
fn a_run_with_a_worker_that_is_too_small_for_an_app_ends() {
    let mut catalog = catalog(2);
    catalog.apps[1].late = Late::Shed;
    catalog.variants[2].memory_bytes = 2_000;
    catalog.workers[1].memory_bytes = 1_500;
    let first_only = crate::policies::script("first-only", |window, plan| {
        let workers = &window.workers;
        let is_idle = workers.running_variant[0] == IDLE && workers.queued[0] == 0;
        if let Some(&id) = window.requests.id.first().filter(|_| is_idle) {
            let app = window.requests.app[0];
            let dispatch = Dispatch {
                worker: WorkerId(0),
                variant: VariantId(app + 1),
                from_stage: 0,
                to_stage: if app == 0 { 3 } else { 1 },
                exit: Some(ExitId(1 - app)),
                place: 0,
                size: 0,
            };
            plan.dispatch(dispatch, [RequestId(id)]);
        }
    });
    let mut scenario = scenario(catalog, "heart=periodic:150;fall=periodic:100@deadline=8ms");
    scenario.duration = Micros::from_millis(500);
    let report = run(&scenario, &first_only, 1).unwrap();
    check(&report);
}

#[test]
fn a_policy_that_always_faults_is_taken_off() {
    let faulting = Contender::new("faulting", || Useless::faulting(FaultKind::Trap));
    let report = run(&scenario(catalog(2), "poisson:100"), &faulting, 1).unwrap();
    check(&report);
    assert_eq!((report.faults["trap"], report.taken_off), (5, 1));
    assert!(report.total.in_time_ratio > 0.99, "the fallback serves");
}

/// A lane waits for a full batch that never comes, and the run ends before it would start a
/// smaller one: the fallback serves the rest.
#[test]
fn the_fallback_serves_the_rest_at_the_end() {
    use switchyard_core::ids::{AppId, ExitId, VariantId};
    use switchyard_core::plan::{Lane, Route};

    let lane = Lane {
        worker: WorkerId(0),
        variant: VariantId(0),
        exit: ExitId(0),
        weight: 1.0,
        min_batch: 8,
        max_batch: 8,
        capacity: 64,
    };
    let routed = crate::policies::script("routed", move |window, plan| {
        if window.because.changed || window.because.workers {
            plan.routes.push(Route {
                app: AppId(0),
                lanes: vec![lane],
            });
        }
    });
    let mut scenario = scenario(catalog(1), "heart=periodic:1000");
    scenario.requests_max = 803;
    scenario.drain_max = Micros(1_000);
    let report = run(&scenario, &routed, 1).unwrap();
    check(&report);
    assert_eq!((report.total.arrivals, report.abandoned), (803, 3));
    assert_eq!(report.batches.sizes[8], 100);
}

#[test]
fn two_hundred_thousand_requests_balance() {
    let mut scenario = scenario(catalog(8), "mmpp:3000,800,1,1@mix=heart:2,fall:1");
    scenario.requests_max = 200_000;
    scenario.duration = Micros(u64::MAX);
    let report = run(&scenario, &edf(), 1).unwrap();
    check(&report);
    assert_eq!(report.total.arrivals, 200_000);
    assert_eq!(report.phases.len(), 2);
}

/// `cargo test --release -p switchyard-sim -- --ignored`
#[test]
#[ignore = "10 million requests take minutes without optimisation"]
fn ten_million_requests_balance() {
    let mut scenario = scenario(catalog(8), "mmpp:3000,800,1,1@mix=heart:2,fall:1");
    scenario.requests_max = 10_000_000;
    scenario.duration = Micros(u64::MAX);
    let report = run(&scenario, &edf(), 1).unwrap();
    check(&report);
    assert_eq!(report.total.arrivals, 10_000_000);
}
