//! Two apps: one with three variants, the largest of which has exits, one with two.

use std::sync::Arc;

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;

/// App, variant, accuracy by exit, milliseconds of a stage alone and in a batch of 8.
const VARIANTS: [(u32, &str, &[f64], f64, f64); 5] = [
    (0, "conv-s", &[0.81], 3.0, 8.0),
    (0, "conv-m", &[0.88], 8.0, 26.0),
    (0, "resnet", &[0.86, 0.91, 0.94], 8.0, 30.0),
    (1, "mlp", &[0.78], 2.0, 5.0),
    (1, "lstm", &[0.92], 14.0, 52.0),
];

pub(crate) fn catalog(workers: usize) -> Arc<Catalog> {
    let rows = (0..VARIANTS.len()).flat_map(rows);
    Arc::new(Catalog {
        generation: 1,
        apps: vec![app("heart", false), app("fall", true)],
        kinds: vec!["cpu-1t".to_owned()],
        workers: (0..workers).map(worker).collect(),
        profile: Profile::new(0.95, rows, []),
        variants: VARIANTS.iter().map(variant).collect(),
    })
}

fn rows(v: usize) -> Vec<ProfileRow> {
    let (_, _, exits, one_ms, eight_ms) = VARIANTS[v];
    let mut rows = Vec::new();
    for stage in 0..exits.len() as u32 {
        let exits = std::iter::once(None).chain((0..exits.len() as u32).map(|e| Some(ExitId(e))));
        for exit in exits {
            for (batch, ms) in [(1, one_ms), (8, eight_ms)] {
                rows.push(ProfileRow {
                    kind: KindId(0),
                    variant: VariantId(v as u32),
                    from_stage: stage,
                    to_stage: stage + 1,
                    exit,
                    batch,
                    latency: Micros((ms * 1e3) as u64),
                    energy_uj: None,
                });
            }
        }
    }
    rows
}

fn app(name: &str, drops_late: bool) -> App {
    App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec!["no".to_owned(), "yes".to_owned()],
        slo: Micros::from_millis(60),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5, 0.5],
        frequencies: vec![0.8, 0.2],
        sneakpeek: None,
        late: if drops_late { Late::Drop } else { Late::Serve },
    }
}

fn variant(&(app, name, accuracies, ..): &(u32, &str, &[f64], f64, f64)) -> Variant {
    let exits = accuracies.iter().zip(1..).map(|(&accuracy, stage)| Exit {
        name: format!("stage{stage}"),
        after_stage: stage,
        accuracy,
        recall: vec![accuracy + 0.01, accuracy - 0.04],
        confusion: None,
    });
    Variant {
        name: name.to_owned(),
        app: AppId(app),
        stages: accuracies.len() as u32,
        exits: exits.collect(),
        memory_bytes: 4_000_000,
        max_batch: 8,
        quality_unknown: false,
    }
}

fn worker(w: usize) -> WorkerSpec {
    WorkerSpec {
        name: format!("cpu-{w}"),
        kind: KindId(0),
        memory_bytes: 64_000_000,
        queue_max: 4,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    }
}
