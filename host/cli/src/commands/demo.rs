//! `switchyard demo`: a server of its own, driven with real requests while policies are swapped.

use std::path::PathBuf;

use clap::Args;
use switchyard_executor::DeviceName;
use switchyard_executor::candle_threads::configure_candle;

use super::Failure;
use crate::demo::{DemoError, DemoOptions, DemoReport};

/// Threads of each of the demo's workers.
const WORKER_THREADS: usize = 1;

/// Drive a server with real requests while its policy is swapped, and compare the policies
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard demo --policies target/policies --zoo models/zoo
  switchyard demo --seconds 10 --load 1.2 --json

Ends with exit code 1 when a request was lost or a policy served less well than fcfs.")]
pub(super) struct DemoArgs {
    /// Folder of policies
    #[arg(long, value_name = "DIR", default_value = "target/policies")]
    policies: PathBuf,
    /// Folder of models
    #[arg(long, value_name = "DIR", default_value = "models/zoo")]
    zoo: PathBuf,
    /// Folder where this machine's latencies are kept
    #[arg(long, value_name = "DIR", default_value = "profiles")]
    profiles: PathBuf,
    /// What its workers compute on: cpu or cuda:0
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: DeviceName,
    /// How long each policy serves in each of the two rounds
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = super::positive)]
    seconds: f64,
    /// Offered load, as a share of what the most accurate variants sustain on all workers
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = super::positive)]
    load: f64,
    /// Seed of arrivals and inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Two seconds per phase
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs and prints; fails when the demo does not show what it should.
pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    configure_candle(WORKER_THREADS);
    let options = DemoOptions {
        policies: args.policies.clone(),
        zoo: args.zoo.clone(),
        profiles: args.profiles.clone(),
        device: args.device,
        names: ["fcfs", "sneakpeek", "stability"]
            .map(str::to_owned)
            .to_vec(),
        rounds: 2,
        phase_s: if args.quick { 2.0 } else { args.seconds },
        load: args.load,
        seed: args.seed,
    };
    let report = crate::demo::run(&options).map_err(|error| match error {
        DemoError::Input(_) => Failure::input(error),
        DemoError::Server(_) => Failure::check(error),
    })?;
    print(&report, args.json)?;
    let failures = report.failures();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::check(failures.join("; ")))
}

fn print(report: &DemoReport, json: bool) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(report).map_err(Failure::check)?;
        println!("{text}");
    } else {
        println!("{report}");
    }
    Ok(())
}
