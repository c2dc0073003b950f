//! From the file of a shipped policy to one that may serve: in baseline code, in optimised code, and compiled
//! before. And the price of baseline code: a window of 64 requests in both. Loading reads all artifacts of a
//! policy once, to tell versions apart; `files` counts them.
//!
//! Needs `cargo xtask plugins`. The compiling threads are those of a server: all cores but one.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/component_file.rs"]
mod component_file;
#[path = "common/measure.rs"]
mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use component_file::component_file;
use measure::{BenchCall, median, medians_us};
use ppo_router_train::TestBed;
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Policy, WindowFields};
use switchyard_core::window::Window;
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::trial::{catalog, window_of};
use switchyard_policy::{
    CodeTier, EngineOptions, Limits, Loaded, Loader, LoaderOptions, PolicyEngine,
};

/// Recorded windows that a server tries a policy on.
const TRIAL_WINDOWS: usize = 16;
const PENDING: usize = 64;
/// Long enough for a machine that does other things too.
const BUDGET: Duration = Duration::from_secs(2);

struct Bench {
    engine: PolicyEngine,
    catalog: Catalog,
    windows: Vec<Window>,
}

fn main() {
    let turns = match std::env::args().any(|arg| arg == "--quick") {
        true => 5,
        false => 15,
    };
    let engine = PolicyEngine::live(&EngineOptions::default()).unwrap();
    println!(
        "           |     |       | baseline code      | optimised code     | compiled | window of 64"
    );
    println!(
        "policy     | KiB | files | compile |  ready ms | compile |  ready ms | ready ms | slower by"
    );
    println!(
        "---------- | --- | ----- | ------- | --------- | ------- | --------- | -------- | ---------"
    );
    for file in shipped() {
        println!("{}", Bench::new(&engine, &file).row(&file, turns));
    }
}

/// Components of `target/policies`, by name.
fn shipped() -> Vec<PathBuf> {
    let fcfs = component_file("SWITCHYARD_POLICIES", "policies", "fcfs");
    let entries = fs::read_dir(fcfs.parent().unwrap()).expect("run `cargo xtask plugins` first");
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|end| end == "wasm"))
        .collect();
    files.sort();
    files
}

/// Files of a folder and of those in it; none without the folder.
fn files_in(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let counts = paths.map(|path| match path.is_dir() {
        true => files_in(&path),
        false => 1,
    });
    counts.sum()
}

impl Bench {
    fn new(engine: &PolicyEngine, file: &Path) -> Self {
        // The router's weights name the models that they are for.
        let catalog = match file.ends_with("ppo-router.wasm") {
            true => TestBed::paper().with_batches().catalog(),
            false => catalog(),
        };
        let wants = WindowFields {
            evidence: true,
            completions: true,
            placed: true,
            residents: true,
        };
        Self {
            engine: engine.clone(),
            windows: vec![window_of(&catalog, wants, PENDING); TRIAL_WINDOWS],
            catalog,
        }
    }

    fn row(&self, file: &Path, turns: usize) -> String {
        let [mut baseline, mut optimised, mut before] = [(); 3].map(|()| Vec::new());
        for _ in 0..turns {
            let cache = tempfile::tempdir().unwrap();
            let loader = self.loader(cache.path());
            baseline.push(self.load(&loader.loading_soon(), file));
            optimised.push(self.load(&loader, file));
            before.push(self.load(&loader, file));
        }
        let mut policies: Vec<_> = [&mut baseline, &mut optimised]
            .map(|loads| loads.pop().unwrap().1.policy)
            .into_iter()
            .collect();
        let mut calls: Vec<_> = policies
            .iter_mut()
            .map(|it| self.asks(it.as_mut()))
            .collect();
        let windows_us = medians_us(&mut calls);
        let compile = |loads: &[(f64, Loaded)]| {
            let times = loads
                .iter()
                .map(|(_, loaded)| loaded.report.compile_us as f64 / 1e3);
            median(&mut times.collect::<Vec<_>>())
        };
        let ready = |loads: &[(f64, Loaded)]| {
            median(&mut loads.iter().map(|(ms, _)| *ms).collect::<Vec<_>>())
        };
        assert!(before.iter().all(|(_, loaded)| loaded.report.cached));
        let is_baseline = |(_, loaded): &(f64, Loaded)| loaded.report.code == CodeTier::Baseline;
        assert!(baseline.iter().all(is_baseline), "no baseline code here");
        format!(
            "{:10} | {:3} | {:5} | {:7.1} | {:9.1} | {:7.1} | {:9.1} | {:8.1} | {:9.2}",
            file.file_stem().unwrap().to_string_lossy(),
            fs::metadata(file).unwrap().len() / 1024,
            files_in(&file.with_extension("")),
            compile(&baseline),
            ready(&baseline),
            compile(&optimised),
            ready(&optimised),
            ready(&before),
            windows_us[0] / windows_us[1],
        )
    }

    fn loader(&self, cache: &Path) -> Loader {
        let limits = Limits {
            window_budget: BUDGET,
            restart_budget: BUDGET,
            configure_budget: BUDGET,
            ..Limits::default()
        };
        let options = LoaderOptions {
            cache_dir: Some(cache.to_owned()),
            limits,
            seed: 0,
        };
        Loader::new(self.engine.clone(), options)
    }

    /// The whole time in milliseconds, and the policy.
    fn load(&self, loader: &Loader, file: &Path) -> (f64, Loaded) {
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &self.windows,
        };
        let began = Instant::now();
        let loaded = loader.load(file, trial).unwrap_or_else(|e| panic!("{e}"));
        (began.elapsed().as_secs_f64() * 1e3, loaded)
    }

    fn asks<'a>(&'a self, policy: &'a mut dyn Policy) -> BenchCall<'a> {
        let mut plan = Plan::default();
        Box::new(move || {
            plan.clear();
            policy.schedule(&self.windows[0], &mut plan).unwrap();
        })
    }
}
