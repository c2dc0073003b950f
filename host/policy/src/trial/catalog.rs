//! A catalog of two apps and three workers with every difficulty of a real one: exits, stages, a
//! worker too small for a variant, kinds that differ, evidence, an app that drops late requests.

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, SneakPeekModel, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::Micros;

/// Memory of the worker that cannot hold the largest variant.
const SMALL_BYTES: u64 = 8 << 20;
const LARGE_BYTES: u64 = 64 << 20;

/// Batch sizes that are profiled.
const BATCHES: [u32; 3] = [1, 4, 16];

/// The catalog that policies are examined on.
pub fn catalog() -> Catalog {
    let variants = vec![
        variant("small", 0, &[(1, 0.80)], 2 << 20),
        variant("deep", 0, &[(1, 0.70), (2, 0.85), (3, 0.95)], 16 << 20),
        variant("only", 1, &[(2, 0.90)], 4 << 20),
    ];
    let apps = vec![
        app("three", &["x", "y", "z"], Penalty::Sigmoid, true),
        app("two", &["yes", "no"], Penalty::Step, false),
    ];
    of(
        1,
        apps,
        variants,
        vec![
            worker("a", 0, SMALL_BYTES),
            worker("b", 0, LARGE_BYTES),
            worker("c", 1, LARGE_BYTES),
        ],
    )
}

/// The same catalog after a change: one more app, which does not classify, with a variant of unknown
/// quality, one more variant of an old app, and one more worker. Lists only grow.
pub fn changed_catalog() -> Catalog {
    let Catalog {
        mut apps,
        mut variants,
        mut workers,
        ..
    } = catalog();
    apps.push(App {
        task: Task::Embed,
        ..app("new", &["any"], Penalty::Linear, false)
    });
    variants.push(variant("tiny", 1, &[(1, 0.60)], 1 << 20));
    variants.push(Variant {
        quality_unknown: true,
        ..variant("first", 2, &[(1, 0.5)], 1 << 20)
    });
    workers.push(worker("d", 1, LARGE_BYTES));
    of(2, apps, variants, workers)
}

fn of(
    generation: u64,
    apps: Vec<App>,
    variants: Vec<Variant>,
    workers: Vec<WorkerSpec>,
) -> Catalog {
    let kinds = vec!["slow".to_owned(), "fast".to_owned()];
    let ids = || (0u32..).map(VariantId).zip(&variants);
    let kind_ids = [KindId(0), KindId(1)];
    let rows = ids().flat_map(|(id, variant)| {
        kind_ids
            .into_iter()
            .flat_map(move |kind| rows(kind, id, variant))
    });
    let loads = ids().flat_map(|(id, variant)| {
        kind_ids.into_iter().map(move |kind| LoadRow {
            kind,
            variant: id,
            latency: Micros(1_000 * (variant.memory_bytes >> 20)),
        })
    });
    Catalog {
        generation,
        apps,
        profile: Profile::new(0.95, rows, loads),
        variants,
        kinds,
        workers,
    }
}

fn app(name: &str, classes: &[&str], penalty: Penalty, has_evidence: bool) -> App {
    let count = classes.len();
    App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: classes.iter().map(|&class| class.to_owned()).collect(),
        slo: Micros::from_millis(100),
        penalty,
        prior: vec![0.5; count],
        frequencies: vec![1.0 / count as f64; count],
        sneakpeek: has_evidence.then(|| SneakPeekModel {
            neighbours: 5,
            accuracy: 0.6,
            recall: vec![0.6; count],
            confusion: None,
        }),
        late: if has_evidence {
            Late::Serve
        } else {
            Late::Drop
        },
    }
}

/// `exits` as stages that run before each, and accuracy.
fn variant(name: &str, app: u32, exits: &[(u32, f64)], memory_bytes: u64) -> Variant {
    let classes = match app {
        0 => 3,
        1 => 2,
        // It does not classify.
        _ => 1,
    };
    let exit = |&(after_stage, accuracy): &(u32, f64)| Exit {
        name: format!("after-{after_stage}"),
        after_stage,
        accuracy,
        recall: vec![accuracy; classes],
        confusion: None,
    };
    Variant {
        name: name.to_owned(),
        app: AppId(app),
        stages: exits.last().map_or(1, |last| last.0),
        exits: exits.iter().map(exit).collect(),
        memory_bytes,
        max_batch: 16,
        quality_unknown: false,
    }
}

fn worker(name: &str, kind: u32, memory_bytes: u64) -> WorkerSpec {
    WorkerSpec {
        name: name.to_owned(),
        kind: KindId(kind),
        memory_bytes,
        queue_max: 8,
        parked_max: 32,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    }
}

/// Whole runs to each exit, and each stage alone without one.
fn rows(kind: KindId, id: VariantId, variant: &Variant) -> Vec<ProfileRow> {
    let mut rows = Vec::new();
    let mut add = |from_stage, to_stage, exit| {
        for batch in BATCHES {
            rows.push(ProfileRow {
                kind,
                variant: id,
                from_stage,
                to_stage,
                exit,
                batch,
                latency: latency(kind, to_stage - from_stage, batch),
                energy_uj: None,
            });
        }
    };
    for (exit, found) in (0u32..).zip(&variant.exits) {
        add(0, found.after_stage, Some(ExitId(exit)));
        if found.after_stage > 1 {
            add(found.after_stage - 1, found.after_stage, Some(ExitId(exit)));
        }
    }
    (0..variant.stages).for_each(|stage| add(stage, stage + 1, None));
    rows
}

/// A stage takes 1 ms and each request of the batch a quarter of one; half on the fast kind.
fn latency(kind: KindId, stages: u32, batch: u32) -> Micros {
    let us = u64::from(stages) * (1_000 + 250 * u64::from(batch));
    Micros(us / (1 + u64::from(kind.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_catalogs_hold_together_and_the_change_only_adds() {
        let (before, after) = (catalog(), changed_catalog());
        assert_eq!(before.validate(), Ok(()));
        assert_eq!(after.validate(), Ok(()));
        assert!(after.apps.starts_with(&before.apps));
        assert!(after.variants.starts_with(&before.variants));
        assert!(after.workers.starts_with(&before.workers));
        assert!(after.generation > before.generation);
    }

    #[test]
    fn one_worker_is_too_small_for_one_variant() {
        let catalog = catalog();
        let fits = |w: usize, v: usize| {
            catalog.variants[v].memory_bytes <= catalog.workers[w].memory_bytes
        };
        assert!(!fits(0, 1) && fits(0, 0) && fits(0, 2));
        assert!((0..3).all(|variant| fits(1, variant) && fits(2, variant)));
    }
}
