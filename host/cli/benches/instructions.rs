//! Work that is counted in instructions, not timed: the same number on a busy machine.
//!
//! `cargo xtask bench --guard` runs each case under callgrind and compares the counts with
//! `tests/instructions.toml`. Alone: `instructions CASE CALLS`, or nothing for the names.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "race/contender.rs"]
#[allow(dead_code)]
mod contender;
#[path = "race/load.rs"]
#[allow(dead_code)]
mod load;
#[path = "race/model.rs"]
#[allow(dead_code)]
mod model;
#[path = "../../policy/benches/common/test_bed.rs"]
#[allow(dead_code)]
mod test_bed;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use load::Body;
use switchyard_core::cost::Cost;
use switchyard_core::event::{BatchEnd, Command, Event};
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::Plan;
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};
use switchyard_core::{Scheduler, SchedulerConfig};
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{EngineOptions, Loader, LoaderOptions, PolicyEngine};
use switchyard_server::ingress::{AppInfo, Datatype, TensorSpec, parse};

/// The work of one call.
type Work = Box<dyn FnMut()>;

/// A name and the preparation of the work.
type Case = (&'static str, fn() -> Work);

/// Stands in `tests/instructions.toml` by these names.
const CASES: [Case; 8] = [
    ("window-fcfs-1", || window("fcfs", 1)),
    ("window-fcfs-64", || window("fcfs", 64)),
    ("window-fcfs-1024", || window("fcfs", 1_024)),
    ("window-stability-64", || window("stability", 64)),
    ("plan-64", || plan(64)),
    ("parse-json", || parsing(Body::Json.bytes(), model::SAMPLES)),
    ("parse-binary", || {
        parsing(Body::Binary.bytes(), model::SAMPLES)
    }),
    ("parse-image", || parsing(image(), PIXELS)),
];

/// Numbers of an image of 224 x 224, in three colours.
const PIXELS: usize = 3 * 224 * 224;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(name) = args.next() else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return;
    };
    let calls: u32 = args.next().map_or(1, |calls| calls.parse().unwrap());
    let (_, prepare) = CASES.iter().find(|(case, _)| *case == name).unwrap();
    let mut work = prepare();
    // The first calls also grow buffers.
    for _ in 0..8 {
        work();
    }
    counted(&mut work, calls);
}

/// Callgrind counts between this function's call and its return.
#[inline(never)]
fn counted(work: &mut Work, calls: u32) {
    for _ in 0..calls {
        work();
    }
}

/// A window through wasm: lowering, the policy, lifting. On fuel, which counts in the code itself:
/// the clock that cuts live calls would interrupt others at every run.
fn window(policy: &str, pending: usize) -> Work {
    let engine = PolicyEngine::deterministic(&EngineOptions::default()).unwrap();
    let loader = Loader::new(engine, LoaderOptions::default());
    let catalog = test_bed::catalog();
    let trial = PolicyTrial {
        catalog: &catalog,
        windows: &[],
    };
    let file = policies().join(format!("{policy}.wasm"));
    let mut loaded = loader.load(&file, trial).unwrap().policy;
    let window = test_bed::window(pending, loaded.description().wants);
    let mut plan = Plan::default();
    Box::new(move || {
        plan.clear();
        loaded.schedule(black_box(&window), &mut plan).unwrap();
        // The engine and its thread live as long as the policy.
        let _ = &loader;
    })
}

fn policies() -> PathBuf {
    std::env::var_os("SWITCHYARD_POLICIES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/policies"),
        PathBuf::from,
    )
}

/// The core's share on the native fallback: arrivals, the snapshot, the check of a plan that
/// places them all, its batches and replies.
fn plan(arrivals: u64) -> Work {
    let config = SchedulerConfig::default();
    let mut scheduler = Scheduler::try_new(Arc::new(test_bed::catalog()), config).unwrap();
    let (mut now, mut next) = (Time(1_000), 0);
    Box::new(move || {
        for _ in 0..arrivals {
            scheduler.handle(now, Event::Arrived(request(next, now)));
            next += 1;
        }
        let mut replies = 0;
        while replies < arrivals {
            let command = scheduler.poll(now).expect("all of them are placed");
            match command {
                Command::Launch(launch) => {
                    now += Micros(10);
                    let event = Event::Finished {
                        worker: launch.worker,
                        batch: launch.batch,
                        end: BatchEnd::Done,
                    };
                    scheduler.handle(now, event);
                }
                Command::Reply(_) => replies += 1,
                _ => {}
            }
        }
    })
}

fn request(id: u64, now: Time) -> Request {
    Request {
        id: RequestId(id),
        app: AppId((id % 3) as u32),
        arrival: now,
        deadline: now + Micros(100_000),
        priority: 0,
        min_accuracy: 0.0,
        pinned: None,
        cost: Cost::ONE,
    }
}

/// A body, from bytes to a checked call: the length of its JSON where bytes follow it, itself, and
/// the numbers of its input.
fn parsing((json_bytes, body): (Option<usize>, Vec<u8>), numbers: usize) -> Work {
    let app = AppInfo {
        name: model::APP.to_owned(),
        variants: vec!["only".to_owned()],
        platform: "candle".to_owned(),
        inputs: vec![tensor("x", numbers)],
        outputs: vec![tensor("probabilities", model::CLASSES)],
        max_batch_rows: 64,
        max_timeout_us: 60_000_000,
        non_finite: false,
        accuracy_max: 0.95,
        accuracies: vec![Some(0.9)],
        classes: Vec::new(),
    };
    let body = Bytes::from(body);
    Box::new(move || {
        let call = parse(&app, json_bytes, black_box(&body)).unwrap();
        assert_eq!(call.rows, 1);
    })
}

/// Binary and large: it stays where it is.
fn image() -> (Option<usize>, Vec<u8>) {
    let size = PIXELS * size_of::<f32>();
    let head = format!(
        r#"{{"inputs":[{{"name":"x","shape":[1,{PIXELS}],"datatype":"FP32","parameters":{{"binary_data_size":{size}}}}}]}}"#
    );
    let body = [head.as_bytes(), &vec![0; size]].concat();
    (Some(head.len()), body)
}

fn tensor(name: &str, width: usize) -> TensorSpec {
    TensorSpec {
        name: name.to_owned(),
        datatype: Datatype::F32,
        shape: vec![width as i64],
        largest: Vec::new(),
        content: Default::default(),
    }
}
