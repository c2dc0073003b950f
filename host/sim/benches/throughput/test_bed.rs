//! Sixty workers of one kind, three apps with two variants each.

use std::sync::Arc;

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;

pub(crate) const APPS: u32 = 3;
pub(crate) const MAX_BATCH: u32 = 16;

/// Variant `2 * app` takes 4 ms alone and 10 ms for 16, the other one twice that.
pub(crate) fn catalog(workers: usize) -> Arc<Catalog> {
    let row = |v: u32, batch, us| ProfileRow {
        kind: KindId(0),
        variant: VariantId(v),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch,
        latency: Micros(us * u64::from(1 + v % 2)),
        energy_uj: None,
    };
    let rows = (0..2 * APPS).flat_map(|v| [row(v, 1, 4_000), row(v, MAX_BATCH, 10_000)]);
    Arc::new(Catalog {
        generation: 1,
        apps: (0..APPS).map(app).collect(),
        variants: (0..2 * APPS).map(variant).collect(),
        kinds: vec!["cpu-1t".to_owned()],
        workers: (0..workers).map(worker).collect(),
        profile: Profile::new(0.95, rows, []),
    })
}

fn app(a: u32) -> App {
    App {
        name: format!("app{a}"),
        task: Task::Classify,
        classes: ["a", "b", "c"].map(str::to_owned).to_vec(),
        slo: Micros::from_millis(50),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5; 3],
        frequencies: vec![0.5, 0.3, 0.2],
        sneakpeek: None,
        late: Late::Serve,
    }
}

fn variant(v: u32) -> Variant {
    let accuracy = 0.7 + 0.1 * f64::from(v % 2);
    Variant {
        name: format!("variant{v}"),
        app: AppId(v / 2),
        stages: 1,
        exits: vec![Exit {
            name: "final".to_owned(),
            after_stage: 1,
            accuracy,
            recall: vec![accuracy; 3],
            confusion: None,
        }],
        memory_bytes: 1_000,
        max_batch: MAX_BATCH,
        quality_unknown: false,
    }
}

fn worker(w: usize) -> WorkerSpec {
    WorkerSpec {
        name: format!("w{w}"),
        kind: KindId(0),
        memory_bytes: 100_000,
        queue_max: 4,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    }
}
