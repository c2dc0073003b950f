//! `switchyard demo`: real requests to its own server while policies are swapped.

use std::path::PathBuf;

use clap::Args;
use switchyard_executor::DeviceName;
use switchyard_executor::candle_threads::configure_candle;
use switchyard_simulate::bundle::Bundle;
use switchyard_simulate::shipped;

use super::failure::Failure;
use super::numbers::positive;
use super::print;
use crate::demo::{DemoError, DemoOptions, DemoReport};

/// Threads of each of the demo's workers.
const WORKER_THREADS: usize = 1;

/// Drive a server with real requests while its policy is swapped, and compare the policies
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard demo
  switchyard demo --policies target/policies --zoo models/zoo
  switchyard demo --seconds 10 --load 1.2 --json

Exit code 1 if a request is lost or a policy has less utility than fcfs.")]
pub(super) struct DemoArgs {
    /// Folder of policies [default: those that come with the program]
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// Folder of models [default: those that come with the program]
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Folder of this machine's profiles [default: profiles in the repository, otherwise in the user's
    /// cache]
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,
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

/// The folders that options do not name.
struct Folders {
    policies: PathBuf,
    zoo: PathBuf,
    profiles: PathBuf,
}

// === impl Folders ===

impl Folders {
    /// Those of the program; without any, those of a repository in the current folder.
    fn find() -> Self {
        match Bundle::find() {
            Some(Bundle {
                zoo,
                policies,
                repository,
            }) => Self {
                policies,
                zoo,
                profiles: match repository {
                    Some(root) => root.join("profiles"),
                    None => shipped::own_folder().join("profiles"),
                },
            },
            None => Self {
                policies: PathBuf::from("target/policies"),
                zoo: PathBuf::from("models/zoo"),
                profiles: PathBuf::from("profiles"),
            },
        }
    }
}

/// Runs and prints; an error if the demo fails.
pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    configure_candle(WORKER_THREADS);
    let folders = Folders::find();
    let options = DemoOptions {
        policies: args.policies.clone().unwrap_or(folders.policies),
        zoo: args.zoo.clone().unwrap_or(folders.zoo),
        profiles: args.profiles.clone().unwrap_or(folders.profiles),
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
