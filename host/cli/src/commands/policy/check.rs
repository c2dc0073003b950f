//! `switchyard policy check`: load a component, examine it, print the verdict.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use switchyard_conformance::examine;
use switchyard_policy::loader::{LoadPhase, PolicyTrial};
use switchyard_policy::trial;
use switchyard_policy::{
    EngineOptions, Limits, LoadError, Loaded, Loader, LoaderOptions, PolicyEngine,
};

use super::report::{About, Allowance, Report};
use crate::commands::failure::Failure;

/// Load a component, run it on windows of every shape, print its abilities and limits
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy check target/policies/sneakpeek.wasm
  switchyard policy check my-policy.wasm --budget-ms 20 --json

The policy is configured with a small built-in catalog, with the settings in NAME.toml next to
NAME.wasm, and with the artifacts in the folder NAME. The limits are those of a server.

Exit codes: 0 it passes, 1 it fails, with the reasons, 2 the file cannot be read.")]
pub(super) struct CheckArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// Longest time of one window, as pool.window_budget_ms
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    budget_ms: u64,
    /// Most memory in MiB, as pool.policy_memory_mb
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    memory_mb: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks and prints; an error if the policy fails.
pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let limits = Limits {
        window_budget: Duration::from_millis(args.budget_ms),
        memory_bytes: (args.memory_mb as usize) << 20,
        ..Limits::default()
    };
    // The check makes several instances; the code is compiled once.
    let cache = tempfile::tempdir().map_err(Failure::input)?;
    let options = LoaderOptions {
        cache_dir: Some(cache.path().to_owned()),
        limits: limits.clone(),
        seed: 0,
    };
    let engine = PolicyEngine::live(&EngineOptions::default()).map_err(Failure::check)?;
    let loader = Loader::new(engine, options);
    let report = match check(&loader, &args.file) {
        Ok(report) => report,
        Err(error) if error.phase == LoadPhase::Read => return Err(Failure::input(error)),
        Err(error) => Report::refused(&args.file, error.phase.label(), &error.cause),
    };
    report.print(&Allowance::of(&limits), args.json)?;
    report.verdict()
}

/// The report; an error if the policy does not load.
fn check(loader: &Loader, file: &Path) -> Result<Report, LoadError> {
    let catalog = trial::catalog();
    let trial = PolicyTrial {
        catalog: &catalog,
        windows: &[],
    };
    let loaded = loader.load(file, trial)?;
    let about = About::of(&loaded);
    let Loaded {
        version, policy, ..
    } = loaded;
    drop(policy);
    let examination = examine(loader, &version)?;
    Ok(Report::examined(file, about, examination))
}
