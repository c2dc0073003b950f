//! The baselines on the paper's test bed, simulated: the rows of its table 2 that a short
//! simulation reproduces.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use routing::Routing;
use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_sdk::native::Native;
use switchyard_sim::{Contender, Report, Scenario, run};

/// Four GPUs; heavy takes 42.8 ms, light 12 ms.
fn catalog() -> Catalog {
    let models = [("heavy", 0.8278, 42_800), ("light", 0.7769, 12_000)];
    let variant = |&(name, accuracy, _): &(&str, f64, u64)| Variant {
        name: name.to_owned(),
        app: AppId(0),
        stages: 1,
        exits: vec![Exit {
            name: "final".to_owned(),
            after_stage: 1,
            accuracy,
            recall: vec![accuracy],
            confusion: None,
        }],
        memory_bytes: 0,
        max_batch: 1,
        quality_unknown: false,
    };
    let row = |(v, &(_, _, us)): (u32, &(&str, f64, u64))| ProfileRow {
        kind: KindId(0),
        variant: VariantId(v),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch: 1,
        latency: Micros(us),
        energy_uj: None,
    };
    let worker = |n: u32| WorkerSpec {
        name: format!("gpu-{n}"),
        kind: KindId(0),
        memory_bytes: 1,
        queue_max: 14,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    };
    Catalog {
        generation: 1,
        apps: vec![App {
            name: "imagenet".to_owned(),
            task: Task::Classify,
            classes: vec!["image".to_owned()],
            slo: Micros::from_millis(300),
            penalty: Penalty::Step,
            prior: vec![1.0],
            frequencies: vec![1.0],
            sneakpeek: None,
            late: Late::Serve,
        }],
        variants: models.iter().map(variant).collect(),
        kinds: vec!["t4".to_owned()],
        workers: (0..4).map(worker).collect(),
        profile: Profile::new(0.95, (0..).zip(&models).map(row), []),
    }
}

/// Simulates `periods` periods of a burst and a normal phase.
fn simulated(settings: &'static str, periods: u64) -> Report {
    let workload = "phases:180x27.8s,10x100s@known";
    let scenario = Scenario {
        duration: Micros::from_millis(127_800 * periods),
        ..Scenario::new(Arc::new(catalog()), workload.parse().unwrap())
    };
    let contender = Contender::new("routing", move || Native::<Routing>::new(settings));
    let report = run(&scenario, &contender, 1).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
    report
}

#[test]
fn light_instances_are_in_time_and_heavy_ones_are_late_in_a_burst() {
    let light = simulated(r#"{"algorithm": "lw"}"#, 2);
    assert!(light.total.violation_ratio < 1e-3);
    let heavy = simulated(r#"{"algorithm": "hw"}"#, 2);
    let burst = &heavy.phases[0].summary;
    assert!(burst.violation_ratio > 0.97, "{}", burst.violation_ratio);
    let expelled = simulated(r#"{"algorithm": "hw-e"}"#, 2);
    assert_eq!(
        expelled.total.late, 0,
        "requests that would be late are rejected"
    );
    // Four instances serve 93.5 of 180 requests per second; separate queues leave some idle.
    let served = expelled.phases[0].summary.in_time_ratio;
    assert!((0.50..0.54).contains(&served), "{served}");
}

#[test]
fn sa_uses_the_shares_of_the_phase() {
    let report = simulated(r#"{"algorithm": "sa", "slot_ms": 10}"#, 10);
    let [burst, normal] = [0, 1].map(|phase| &report.phases[phase].summary);
    assert!(normal.heavy_share.unwrap() > 0.98);
    assert!((0.20..0.23).contains(&burst.heavy_share.unwrap()));
    assert!(
        (0.01..0.03).contains(&burst.violation_ratio),
        "{}",
        burst.violation_ratio
    );
}
