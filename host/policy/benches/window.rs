//! The time of a window through wasm, compared with the same policy compiled natively, in one run; and that
//! of a large pool, whose windows show all workers or those that changed.
//!
//! Needs `cargo xtask plugins --with-guests`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/component_file.rs"]
mod component_file;
#[path = "common/measure.rs"]
mod measure;
#[path = "common/test_bed.rs"]
mod test_bed;

use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use component_file::component_file;
use fcfs::Fcfs;
use measure::{BenchCall, median, medians_us};
use stability::Stability;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::WorkerId;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Policy, WindowFields};
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{EngineOptions, Limits, Loader, LoaderOptions, PolicyEngine};
use switchyard_sdk::native::Native;

/// A policy as a component, and its native twin.
struct PolicyPair {
    name: &'static str,
    native: RefCell<Box<dyn Policy>>,
    wasm: RefCell<Box<dyn Policy>>,
}

fn main() {
    let loader = loader();
    let pairs = [
        pair(
            &loader,
            "fcfs",
            "SWITCHYARD_POLICIES",
            "policies",
            Native::<Fcfs>::new("{}"),
        ),
        pair(
            &loader,
            "stability",
            "SWITCHYARD_POLICIES",
            "policies",
            Native::<Stability>::new("{}"),
        ),
        pair(
            &loader,
            "good",
            "SWITCHYARD_GUESTS",
            "policies-test",
            test_bed::NativeGood::default(),
        ),
    ];
    println!("policy     | pending | native us |  wasm us | ratio | dispatches");
    println!("---------- | ------- | --------- | -------- | ----- | ----------");
    for pair in &pairs {
        for pending in [0, 1, 8, 64, 256, 1_024] {
            compare(pair, pending);
        }
    }
    fleets(&loader);
    cut(&loader);
}

fn compare(pair: &PolicyPair, pending: usize) {
    let wants = pair.wasm.borrow().description().wants;
    let window = test_bed::window(pending, wants);
    let (plans, dispatches) = (
        RefCell::new([Plan::default(), Plan::default()]),
        RefCell::new(0),
    );
    let mut calls: [BenchCall<'_>; 2] = [
        Box::new(|| {
            ask(
                &mut **pair.native.borrow_mut(),
                &window,
                &mut plans.borrow_mut()[0],
            );
        }),
        Box::new(|| {
            let plan = &mut plans.borrow_mut()[1];
            ask(&mut **pair.wasm.borrow_mut(), &window, plan);
            *dispatches.borrow_mut() = plan.dispatches.len();
        }),
    ];
    let times = medians_us(&mut calls);
    drop(calls);
    let plans = plans.into_inner();
    assert_eq!(
        plans[0], plans[1],
        "{}: native and wasm decide alike",
        pair.name
    );
    println!(
        "{:<10} | {pending:>7} | {:>9.2} | {:>8.2} | {:>5.2} | {:>10}",
        pair.name,
        times[0],
        times[1],
        times[1] / times[0],
        dispatches.into_inner(),
    );
}

fn ask(policy: &mut dyn Policy, window: &Window, plan: &mut Plan) {
    plan.clear();
    policy.schedule(black_box(window), plan).unwrap();
}

/// A pool of which half is busy: between two windows a batch ends and another one begins.
struct Fleet {
    policy: Option<Box<dyn Policy>>,
    window: Window,
    plan: Plan,
}

impl Fleet {
    fn turn(&mut self) {
        let Window {
            id,
            now,
            workers,
            changes,
            ..
        } = &mut self.window;
        *now += Micros(50);
        let busy = workers.up.len() / 2;
        workers.busy_until[busy..].fill(now.0);
        workers.free_at[busy..].fill(now.0);
        let at = (now.0 / 50) as usize * 7 % busy;
        workers.running_since[at] = now.0;
        workers.running_variant[at] = 1;
        workers.busy_until[at] = now.0 + BATCH.0;
        workers.free_at[at] = now.0 + BATCH.0;
        // As the scheduler tells them.
        changes.since = *id;
        *id += 1;
        changes.workers.clear();
        changes.workers.push(WorkerId(at as u32));
        match &mut self.policy {
            Some(policy) => ask(policy.as_mut(), &self.window, &mut self.plan),
            None => {
                black_box(&self.window);
            }
        }
    }
}

/// Longer than any measurement.
const BATCH: Micros = Micros(3_600_000_000);

/// Windows of large pools, less the time of making them.
fn fleets(loader: &Loader) {
    println!("\nworkers | residents | all, us | changed, us | ratio");
    println!("------- | --------- | ------- | ----------- | -----");
    for workers in [10, 1_000] {
        let catalog = test_bed::catalog_of(workers);
        for residents in [false, true] {
            let wants = WindowFields {
                residents,
                ..WindowFields::default()
            };
            let fleet = |guest: Option<&str>| Fleet {
                policy: guest.map(|guest| {
                    let file = component_file("SWITCHYARD_GUESTS", "policies-test", guest);
                    load_for(loader, &file, &catalog)
                }),
                window: test_bed::window_of(workers, 1, wants),
                plan: Plan::default(),
            };
            let contenders = [None, Some("fleet-whole"), Some("fleet-changed")].map(fleet);
            let mut calls = contenders.map(|mut fleet| {
                let call: BenchCall<'_> = Box::new(move || fleet.turn());
                call
            });
            let times = medians_us(&mut calls);
            let [all, changed] = [times[1] - times[0], times[2] - times[0]];
            println!(
                "{workers:>7} | {:>9} | {all:>7.2} | {changed:>11.2} | {:>5.2}",
                if residents { "shown" } else { "none" },
                changed / all,
            );
        }
    }
}

/// The time of a call that is cut at the default budget, with the next instance.
fn cut(loader: &Loader) {
    let file = component_file("SWITCHYARD_GUESTS", "policies-test", "loops");
    let mut runaway = load(loader, &file);
    let window = test_bed::window(64, runaway.description().wants);
    let mut cuts: Vec<f64> = (0..100)
        .map(|_| {
            let began = Instant::now();
            runaway.schedule(&window, &mut Plan::default()).unwrap_err();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let p50 = median(&mut cuts);
    println!(
        "\ncall cut at 5 ms, with a fresh instance: p50 {p50:.2} ms, p95 {:.2} ms",
        cuts[95]
    );
}

fn loader() -> Loader {
    let engine = PolicyEngine::live(&EngineOptions::default()).unwrap();
    let limits = Limits {
        configure_budget: Duration::from_secs(10),
        ..Limits::default()
    };
    let options = LoaderOptions {
        limits,
        ..LoaderOptions::default()
    };
    Loader::new(engine, options)
}

fn pair(
    loader: &Loader,
    name: &'static str,
    variable: &str,
    folder: &str,
    mut native: impl Policy + 'static,
) -> PolicyPair {
    native.configure(&test_bed::catalog()).unwrap();
    let wasm = load(loader, &component_file(variable, folder, name));
    PolicyPair {
        name,
        native: RefCell::new(Box::new(native)),
        wasm: RefCell::new(wasm),
    }
}

fn load(loader: &Loader, file: &Path) -> Box<dyn Policy> {
    load_for(loader, file, &test_bed::catalog())
}

fn load_for(loader: &Loader, file: &Path, catalog: &Catalog) -> Box<dyn Policy> {
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    match loader.load(file, trial) {
        Ok(loaded) => {
            let report = &loaded.report;
            // No part of the tables.
            eprintln!(
                "{}: compiled in {} us, described in {} us, configured in {} us, renewed in {} us",
                loaded.version.label,
                report.compile_us,
                report.describe_us,
                report.configure_us,
                report.renew_us
            );
            loaded.policy
        }
        Err(error) => panic!("{error}; run `cargo xtask plugins --with-guests` first"),
    }
}
