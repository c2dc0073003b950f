//! Catalogs for the tests.

use std::sync::Arc;

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, SneakPeekModel, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_sim::Scenario;

pub(crate) const LOAD: Micros = Micros(700);

/// The test bed of the core's tests. `heart` can answer from evidence and has a small variant of one
/// stage (1 ms) and a large one of three stages with two exits (2 ms per stage); `fall` drops late
/// requests and has one variant (3 ms). A batch of 8 takes twice as long as one request.
pub(crate) fn catalog(workers: usize) -> Catalog {
    let variants = vec![
        variant("small", 0, &[(1, 0.7)]),
        variant("large", 0, &[(1, 0.8), (3, 0.95)]),
        variant("only", 1, &[(1, 0.9)]),
    ];
    let mut rows = Vec::new();
    for (v, stage_us) in [(0, 1_000), (1, 2_000), (2, 3_000)] {
        for stage in 0..variants[v as usize].stages {
            for exit in [None, Some(ExitId(0)), Some(ExitId(1))] {
                rows.push(row(v, stage, exit, 1, stage_us));
                rows.push(row(v, stage, exit, 8, stage_us * 2));
            }
        }
    }
    Catalog {
        generation: 1,
        apps: vec![app("heart", false), app("fall", true)],
        variants,
        kinds: vec!["cpu-1t".to_owned()],
        workers: (0..workers).map(worker).collect(),
        profile: Profile::new(0.95, rows, loads(3)),
    }
}

/// One app, one variant, one worker, batches of one that take `us`.
pub(crate) fn single_server(us: u64) -> Arc<Catalog> {
    let mut only = variant("only", 0, &[(1, 0.9)]);
    only.max_batch = 1;
    Arc::new(Catalog {
        generation: 1,
        apps: vec![app("heart", false)],
        variants: vec![only],
        kinds: vec!["cpu-1t".to_owned()],
        workers: vec![worker(0)],
        profile: Profile::new(0.95, [row(0, 0, Some(ExitId(0)), 1, us)], []),
    })
}

pub(crate) fn scenario(catalog: impl Into<Arc<Catalog>>, workload: &str) -> Scenario {
    Scenario::new(catalog.into(), workload.parse().unwrap())
}

pub(crate) fn row(v: u32, stage: u32, exit: Option<ExitId>, batch: u32, us: u64) -> ProfileRow {
    ProfileRow {
        kind: KindId(0),
        variant: VariantId(v),
        from_stage: stage,
        to_stage: stage + 1,
        exit,
        batch,
        latency: Micros(us),
        energy_uj: None,
    }
}

pub(crate) fn loads(variants: u32) -> Vec<LoadRow> {
    let load = |v| LoadRow {
        kind: KindId(0),
        variant: VariantId(v),
        latency: LOAD,
    };
    (0..variants).map(load).collect()
}

pub(crate) fn app(name: &str, drops_late: bool) -> App {
    App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec!["a".to_owned(), "b".to_owned()],
        slo: Micros::from_millis(20),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5, 0.5],
        frequencies: vec![0.75, 0.25],
        sneakpeek: (!drops_late).then(|| SneakPeekModel {
            neighbours: 5,
            accuracy: 0.6,
            recall: vec![0.7, 0.3],
            confusion: None,
        }),
        late: if drops_late { Late::Drop } else { Late::Serve },
    }
}

pub(crate) fn variant(name: &str, app: u32, exits: &[(u32, f64)]) -> Variant {
    Variant {
        name: name.to_owned(),
        app: AppId(app),
        stages: exits.last().unwrap().0,
        exits: exits
            .iter()
            .map(|&(after_stage, accuracy)| Exit {
                name: format!("stage{after_stage}"),
                after_stage,
                accuracy,
                recall: vec![accuracy, accuracy - 0.1],
                confusion: None,
            })
            .collect(),
        memory_bytes: 1_000,
        max_batch: 8,
        quality_unknown: false,
    }
}

pub(crate) fn worker(w: usize) -> WorkerSpec {
    WorkerSpec {
        name: format!("w{w}"),
        kind: KindId(0),
        memory_bytes: 10_000,
        queue_max: 4,
        parked_max: 6,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    }
}
