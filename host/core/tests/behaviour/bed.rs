//! The test bed of the core: a small catalog, a driver in virtual time, scripted policies and
//! hostile ones.
#![allow(missing_docs, unreachable_pub)]

pub mod chaos;
pub mod driver;
pub mod script;
pub mod steps;

use std::sync::Arc;

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, SneakPeekModel, Task, Variant, WorkerSpec,
};
use switchyard_core::cost::Cost;
use switchyard_core::ids::{AppId, ExitId, KindId, RequestId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};

/// Two apps. `heart` has a SneakPeek model, a small variant of one stage (1 ms) and a large one of
/// three stages with two exits (2, 4, 6 ms in all). `fall` drops late requests and has one variant
/// (3 ms). A batch of 8 takes twice the time of one request.
pub fn catalog(workers: usize) -> Arc<Catalog> {
    let variants = vec![
        variant("small", 0, &[1], &[0.7]),
        variant("large", 0, &[1, 3], &[0.8, 0.95]),
        variant("only", 1, &[1], &[0.9]),
    ];
    let mut rows = Vec::new();
    for (v, stage_us) in [(0, 1_000), (1, 2_000), (2, 3_000)] {
        let variant = &variants[v as usize];
        for stage in 0..variant.stages {
            for exit in std::iter::once(None).chain((0..2).map(|e| Some(ExitId(e)))) {
                for (batch, factor) in [(1, 1), (8, 2)] {
                    rows.push(ProfileRow {
                        kind: KindId(0),
                        variant: VariantId(v),
                        from_stage: stage,
                        to_stage: stage + 1,
                        exit,
                        batch,
                        latency: Micros(stage_us * factor),
                        energy_uj: None,
                    });
                }
            }
        }
    }
    let loads = (0..3).map(|v| LoadRow {
        kind: KindId(0),
        variant: VariantId(v),
        latency: Micros(500),
    });
    Arc::new(Catalog {
        generation: 1,
        apps: vec![app("heart", false), app("fall", true)],
        variants,
        kinds: vec!["cpu-1t".to_owned()],
        workers: (0..workers).map(worker).collect(),
        profile: Profile::new(0.95, rows, loads),
    })
}

/// The test bed with one treatment of late requests for both apps.
pub fn late_catalog(workers: usize, late: Late) -> Arc<Catalog> {
    let mut catalog = catalog(workers);
    for app in &mut Arc::make_mut(&mut catalog).apps {
        app.late = late;
    }
    catalog
}

pub fn request(id: u64, app: u32, arrival: Time, slack_us: u64) -> Request {
    Request {
        id: RequestId(id),
        app: AppId(app),
        arrival,
        deadline: arrival + Micros(slack_us),
        priority: 0,
        min_accuracy: 0.0,
        pinned: None,
        cost: Cost::ONE,
    }
}

fn app(name: &str, drops_late: bool) -> App {
    App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec!["a".to_owned(), "b".to_owned()],
        slo: Micros::from_millis(20),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5, 0.5],
        frequencies: vec![0.5, 0.5],
        sneakpeek: (!drops_late).then(|| SneakPeekModel {
            neighbours: 5,
            accuracy: 0.6,
            recall: vec![0.6, 0.6],
            confusion: None,
        }),
        late: if drops_late { Late::Drop } else { Late::Serve },
    }
}

fn variant(name: &str, app: u32, after: &[u32], accuracy: &[f64]) -> Variant {
    let exits = after.iter().zip(accuracy).enumerate();
    Variant {
        name: name.to_owned(),
        app: AppId(app),
        stages: *after.last().unwrap(),
        exits: exits
            .map(|(e, (&after_stage, &accuracy))| Exit {
                name: format!("exit{e}"),
                after_stage,
                accuracy,
                recall: vec![accuracy; 2],
                confusion: None,
            })
            .collect(),
        memory_bytes: 1_000,
        max_batch: 8,
        quality_unknown: false,
    }
}

fn worker(w: usize) -> WorkerSpec {
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
