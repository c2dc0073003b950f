//! The cost of the PPO router: a draw for each arrival in the host, and a decision for each slot in
//! wasm, compared with the same policy compiled natively.
//!
//! Needs `cargo xtask plugins`. `--json` prints results as `switchyard simulate --json` does.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/component_file.rs"]
mod component_file;
#[path = "common/measure.rs"]
mod measure;

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::time::Duration;

use component_file::component_file;
use measure::{BenchCall, medians_us};
use ppo_router::PpoRouter;
use ppo_router_net::{Kind, Network};
use ppo_router_train::{TestBed, train};
use rand_pcg::Pcg64;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::{Plan, Route};
use switchyard_core::policy::{Policy, WindowFields};
use switchyard_core::route::LaneSampler;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{Completion, End, Window};
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{EngineOptions, Limits, Loader, LoaderOptions, PolicyEngine};
use switchyard_sdk::host::native::put_artifact;
use switchyard_sdk::native::Native;
use switchyard_sim::Stepped;

const WORKLOAD: &str = "mmpp:180,10,0.036,0.002";
const WEIGHTS: &str = "default/policy.safetensors";
/// Hidden layers of the network in the paper (section 5.1.4).
const HIDDEN: [usize; 2] = [90, 60];
const SLOT: Micros = Micros::from_millis(1_000);
/// Draws of one call: a single draw takes less time than reading the clock.
const DRAWS: u32 = 1_000;

fn main() {
    let paper = ("paper", TestBed::paper(), Kind::Paper);
    let extended = ("extended", TestBed::paper(), Kind::Extended);
    let batching = ("batching", TestBed::paper().with_batches(), Kind::Paper);
    let draw_ns = draw_ns(&TestBed::paper());
    let rows = [paper, extended, batching].map(|(name, bed, kind)| {
        let [native_us, wasm_us] = slot_us(&bed, kind);
        (name, native_us, wasm_us)
    });
    if std::env::args().any(|arg| arg == "--json") {
        println!("{}", json(draw_ns, &rows));
        return;
    }
    println!("one draw: {draw_ns:.1} ns");
    println!("network  | native us | wasm us");
    println!("-------- | --------- | -------");
    for (name, native_us, wasm_us) in rows {
        println!("{name:<8} | {native_us:>9.2} | {wasm_us:>7.2}");
    }
}

fn json(draw_ns: f64, rows: &[(&str, f64, f64)]) -> serde_json::Value {
    let run = |&(policy, native_us, wasm_us): &(&str, f64, f64)| {
        serde_json::json!({
            "point": "",
            "policy": policy,
            "estimates": {
                "draw_ns": {"mean": draw_ns},
                "slot_native_us": {"mean": native_us},
                "slot_wasm_us": {"mean": wasm_us},
            },
        })
    };
    serde_json::json!({"runs": rows.iter().map(run).collect::<Vec<_>>()})
}

/// Nanoseconds of one draw over the lanes of the test bed.
fn draw_ns(bed: &TestBed) -> f64 {
    let mut plan = Plan::default();
    bed.plan(&bed.models_of_instances(), &bed.proportional(), &mut plan);
    let route: &Route = &plan.routes[0];
    let drawn = LaneSampler::new(route).unwrap();
    let mut random = Pcg64::new(1, 2);
    let mut calls: [BenchCall<'_>; 1] = [Box::new(|| {
        for _ in 0..DRAWS {
            black_box(drawn.draw(black_box(&mut random)));
        }
    })];
    medians_us(&mut calls)[0] * 1e3 / f64::from(DRAWS)
}

/// Microseconds of the window of a slot, natively and in wasm.
fn slot_us(bed: &TestBed, kind: Kind) -> [f64; 2] {
    let weights = weights(bed, kind);
    put_artifact(WEIGHTS, weights.clone());
    let catalog = bed.catalog();
    let mut native = Native::<PpoRouter>::new("{}");
    native.configure(&catalog).unwrap();
    let (native, wasm) = (RefCell::new(native), RefCell::new(load(&catalog, &weights)));
    let windows = RefCell::new(windows(bed));
    let (next, plan) = (RefCell::new(0), RefCell::new(Plan::default()));
    let window = |ask: &mut dyn FnMut(&Window, &mut Plan)| {
        let (mut windows, mut next) = (windows.borrow_mut(), next.borrow_mut());
        *next += 1;
        let at = *next % windows.len();
        // Each call begins a slot.
        windows[at].now = Time(*next as u64 * SLOT.0);
        let mut plan = plan.borrow_mut();
        plan.clear();
        ask(&windows[at], &mut plan);
        assert_eq!(plan.routes.len(), 1, "a slot's decision");
    };
    let mut calls: [BenchCall<'_>; 2] = [
        Box::new(|| {
            window(&mut |w, plan| native.borrow_mut().schedule(black_box(w), plan).unwrap());
        }),
        Box::new(|| {
            window(&mut |w, plan| wasm.borrow_mut().schedule(black_box(w), plan).unwrap());
        }),
    ];
    let times = medians_us(&mut calls);
    [times[0], times[1]]
}

/// A network of the size in the paper. Neighbouring weights differ.
fn weights(bed: &TestBed, kind: Kind) -> Vec<u8> {
    let meta = train::meta(bed, kind, &HIDDEN, WORKLOAD, 1, "by hand");
    let number = |i: usize| (i * 37 % 101) as f32 / 505.0 - 0.1;
    let layers = meta.layers.windows(2).map(|shape| {
        let weights = (0..shape[0] * shape[1]).map(number).collect();
        (weights, (0..shape[1]).map(number).collect())
    });
    let layers = layers.collect();
    Network::try_new(meta, layers).unwrap().to_bytes().unwrap()
}

/// Windows of slots in a burst: busy instances, and 180 requests that ended since the last slot.
fn windows(bed: &TestBed) -> Vec<Window> {
    let scenario = bed.scenario("poisson:180".parse().unwrap(), Micros(u64::MAX));
    let wants = WindowFields {
        placed: true,
        ..WindowFields::default()
    };
    let mut stepped = Stepped::try_new(&scenario, SLOT, wants, 1, ()).unwrap();
    let models = bed.models_of_instances();
    let slot = |_| {
        let mut plan = Plan::default();
        bed.plan(&models, &bed.proportional(), &mut plan);
        stepped.step(&mut plan).unwrap();
        let mut window = stepped.window().clone();
        window.completions = (0..180)
            .map(|n| Completion {
                id: RequestId(n),
                app: AppId(0),
                end: End::InTime,
                variant: None,
                exit: None,
                latency: Micros(100_000),
            })
            .collect();
        window
    };
    (0..64).map(slot).collect()
}

/// The component, with weights in its folder.
fn load(catalog: &Catalog, weights: &[u8]) -> Box<dyn Policy> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ppo-router.wasm");
    let built = component_file("SWITCHYARD_POLICIES", "policies", "ppo-router");
    fs::copy(built, &file).expect("run `cargo xtask plugins` first");
    let artifact = folder.path().join("ppo-router").join(WEIGHTS);
    fs::create_dir_all(artifact.parent().unwrap()).unwrap();
    fs::write(artifact, weights).unwrap();
    let options = LoaderOptions {
        limits: Limits {
            configure_budget: Duration::from_secs(10),
            ..Limits::default()
        },
        ..LoaderOptions::default()
    };
    let engine = PolicyEngine::live(&EngineOptions::default()).unwrap();
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    let loaded = Loader::new(engine, options).load(&file, trial);
    loaded.unwrap().policy
}
