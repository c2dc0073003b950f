//! `switchyard policy check`: load a component, examine it, print what it does and may do.

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
use crate::commands::Failure;

/// Load a component, try it on windows of every shape, say what it may and may not do
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy check target/policies/sneakpeek.wasm
  switchyard policy check my-policy.wasm --budget-ms 20 --json

The policy is configured with a small catalog that is built in, with the settings in NAME.toml
beside NAME.wasm, and with the artifacts in the folder NAME. It runs under the same limits as
in a server.

Exit codes: 0 it passes, 1 it fails, with the reasons, 2 the file cannot be read.")]
pub(super) struct CheckArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// Longest time that one window may take, as pool.window_budget_ms
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    budget_ms: u64,
    /// Memory that it may have in MiB, as pool.policy_memory_mb
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    memory_mb: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks and prints; fails when the policy does.
pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let limits = Limits {
        window_budget: Duration::from_millis(args.budget_ms),
        memory_bytes: (args.memory_mb as usize) << 20,
        ..Limits::default()
    };
    // Instances are made several times; the code is compiled once.
    let cache = tempfile::tempdir().map_err(Failure::input)?;
    let options = LoaderOptions {
        cache_dir: Some(cache.path().to_owned()),
        limits: limits.clone(),
        seed: 0,
    };
    let engine = PolicyEngine::live(&EngineOptions::default()).map_err(Failure::check)?;
    let loader = Loader::new(engine, options).map_err(Failure::input)?;
    let report = match check(&loader, &args.file) {
        Ok(report) => report,
        Err(error) if error.phase == LoadPhase::Read => return Err(Failure::input(error)),
        Err(error) => Report::refused(&args.file, error.phase.label(), &error.cause),
    };
    report.print(&Allowance::of(&limits), args.json)?;
    report.verdict()
}

/// What came of it; an error when the policy could not even be loaded.
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
