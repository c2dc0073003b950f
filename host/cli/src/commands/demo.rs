//! `switchyard demo`: real requests to its own server while policies are swapped.

use std::path::PathBuf;

use clap::Args;
use switchyard_executor::DeviceName;
use switchyard_executor::candle_threads::configure_candle;

use super::failure::Failure;
use super::numbers::positive;
use super::print;
use crate::demo::{DemoError, DemoOptions, DemoReport};

/// Threads of each of the demo's workers.
const WORKER_THREADS: usize = 1;

/// Drive a server with real requests while its policy is swapped, and compare the policies
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard demo --policies target/policies --zoo models/zoo
  switchyard demo --seconds 10 --load 1.2 --json

Exit code 1 if a request is lost or a policy has less utility than fcfs.")]
pub(super) struct DemoArgs {
    /// Folder of policies
    #[arg(long, value_name = "DIR", default_value = "target/policies")]
    policies: PathBuf,
    /// Folder of models
    #[arg(long, value_name = "DIR", default_value = "models/zoo")]
    zoo: PathBuf,
    /// Folder of this machine's profiles
    #[arg(long, value_name = "DIR", default_value = "profiles")]
    profiles: PathBuf,
    /// Device of the workers: cpu or cuda:0
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: DeviceName,
    /// Seconds for which each policy serves in each of the two rounds
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = positive)]
    seconds: f64,
    /// Offered load, as a share of the capacity of all workers with the most accurate variants; at
    /// most 4000 requests/s
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = positive)]
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

/// Runs and prints; an error if the demo fails.
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
    match json {
        true => print::json(report),
        false => print::line(report),
    }
}
