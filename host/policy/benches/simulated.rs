//! Simulated requests per second of one core with a policy as a component, limited by fuel as in
//! `switchyard simulate`, compared with the same policy compiled natively, in one run: 60 workers.
//!
//! Needs `cargo xtask plugins`. `cargo bench -p switchyard-policy --bench simulated`;
//! `-- --quick` for a tenth of the requests.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

#[path = "../../sim/benches/throughput/clock.rs"]
#[allow(dead_code)] // This bench reads processor time only.
mod clock;
#[path = "common/component_file.rs"]
mod component_file;
#[path = "../../sim/benches/throughput/test_bed.rs"]
mod test_bed;

use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Elapsed, median};
use component_file::component_file;
use fcfs::Fcfs;
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault, Triggers};
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{EngineOptions, Limits, Loader, LoaderOptions, PolicyEngine};
use switchyard_sdk::native::Native;
use switchyard_sim::{Contender, Report, Scenario, run};

const WORKERS: usize = 60;

/// The component and its native twin at one load.
struct LoadPoint {
    /// Arrivals per second.
    rate: u32,
    /// Time between two windows; none: windows on arrivals and idle workers, as the policy asks.
    every: Option<Micros>,
    scenario: Scenario,
    native: Vec<Elapsed>,
    wasm: Vec<Elapsed>,
    report: Option<Report>,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (requests, turns) = if quick { (200_000, 3) } else { (2_000_000, 5) };
    let native = Contender::new("fcfs", || Native::<Fcfs>::new("{}"));
    let wasm = component("fcfs");
    let every = |ms| Some(Micros::from_millis(ms));
    let mut points = [
        (6_000, None),
        (20_000, None),
        (20_000, every(2)),
        (20_000, every(10)),
    ]
    .map(|(rate, every)| LoadPoint::new(rate, every, requests));
    for _ in 0..turns {
        for point in &mut points {
            point.turn(&native, &wasm);
        }
    }
    println!("fcfs, {requests} requests, {WORKERS} workers, medians of {turns} runs; per second");
    println!("of processor time");
    println!("arrivals/s |   every | native/s | wasm/s  | ratio | windows");
    println!("---------- | ------- | -------- | ------- | ----- | -------");
    points.iter().for_each(LoadPoint::print);
}

/// A policy as a component, compiled once. Each simulation has its own instance.
fn component(name: &str) -> Contender {
    let cache = tempfile::tempdir().unwrap();
    let options = LoaderOptions {
        limits: Limits {
            configure_budget: Duration::from_secs(10),
            ..Limits::default()
        },
        cache_dir: Some(cache.path().to_owned()),
        ..LoaderOptions::default()
    };
    let engine = PolicyEngine::deterministic(&EngineOptions::default()).unwrap();
    let loader = Loader::new(engine, options);
    let file = component_file("SWITCHYARD_POLICIES", "policies", name);
    Contender {
        name: name.to_owned(),
        make: Arc::new(move |catalog| {
            // Keeps the folder as long as the loader that writes to it.
            let _ = &cache;
            let trial = PolicyTrial {
                catalog,
                windows: &[],
            };
            let loaded = loader.load(&file, trial);
            let loaded = loaded.map_err(|error| {
                let reason = format!("{error}; run `cargo xtask plugins` first");
                PolicyFault::new(FaultKind::Failed, reason)
            })?;
            Ok(loaded.policy)
        }),
        foresight: None,
    }
}

/// The policy with periodic windows instead of the events that it asks for.
fn periodic(policy: &Contender, every: Option<Micros>) -> Contender {
    let make = Arc::clone(&policy.make);
    Contender {
        name: policy.name.clone(),
        make: Arc::new(move |catalog| {
            let policy = make(catalog)?;
            let mut description = policy.description().clone();
            if every.is_some() {
                description.every = every;
                description.on = Triggers::default();
            }
            Ok(Box::new(Periodic {
                policy,
                description,
            }))
        }),
        foresight: None,
    }
}

struct Periodic {
    policy: Box<dyn Policy>,
    description: Description,
}

// === impl Periodic ===

impl Policy for Periodic {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.policy.configure(catalog)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.policy.schedule(window, plan)
    }
}

// === impl LoadPoint ===

impl LoadPoint {
    fn new(rate: u32, every: Option<Micros>, requests: u64) -> Self {
        let workload = format!("poisson:{rate}").parse().unwrap();
        Self {
            rate,
            every,
            scenario: Scenario {
                requests_max: requests,
                duration: Micros(u64::MAX),
                ..Scenario::new(test_bed::catalog(WORKERS), workload)
            },
            native: Vec::new(),
            wasm: Vec::new(),
            report: None,
        }
    }

    fn turn(&mut self, native: &Contender, wasm: &Contender) {
        let timed = |policy: &Contender| {
            let policy = &periodic(policy, self.every);
            let clock = Clock::start();
            let report = run(&self.scenario, policy, 1).unwrap();
            (clock.stop(), report)
        };
        let (took, decided) = timed(native);
        self.native.push(took);
        let (took, report) = timed(wasm);
        self.wasm.push(took);
        assert_eq!(
            report.total, decided.total,
            "component and native twin decide alike"
        );
        self.report = Some(report);
    }

    fn print(&self) {
        let report = self.report.as_ref().unwrap();
        let arrivals = report.total.arrivals as f64;
        let per_s = |took: &[Elapsed]| arrivals / median(took.iter().map(|took| took.thread_s));
        let [native, wasm] = [per_s(&self.native), per_s(&self.wasm)];
        println!(
            "{:>10} | {:>7} | {native:>8.0} | {wasm:>7.0} | {:>5.2} | {:>7}",
            self.rate,
            self.every.map_or("event".to_owned(), |every| format!(
                "{} ms",
                every.0 / 1_000
            )),
            native / wasm,
            report.windows,
        );
    }
}
