//! `switchyard profile`: measure what every variant takes on this machine.

mod accuracy;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use switchyard_executor::profile::QuickOptions;
use switchyard_executor::threads::{candle_misfit, configure_candle};

use self::accuracy::Accuracies;
use self::table::Measurements;
use super::{Failure, read_config};
use crate::assembly::{PoolPlan, measure};

/// Most samples per latency: enough that the 99th percentile is not simply the largest.
const SAMPLES_MAX: usize = 400;

/// Measure latencies, load times, memory and accuracy on this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard profile --out profiles/here.json
  switchyard profile --out /tmp/profile.json --config switchyard.toml --seconds 120
  switchyard profile --out /tmp/profile.json --zoo models/zoo --json

Measures every variant of every app on every kind of worker that the configuration has, through
the executor that serves. Latencies come from this machine alone; run nothing beside it.
Accuracies are measured again on a part of each app's validation set and compared with the
card's.

Exit codes: 0 done, 1 an accuracy is not what the card says, 2 the configuration, the zoo or the
output cannot be used.")]
pub(super) struct ProfileArgs {
    /// Where the profile goes, as profile.file names it
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Configuration file; without one, the shipped demo configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of models, in the place of every app's zoo
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Time for latencies, all of them together
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Validation inputs per class that accuracies are measured on; 0: none
    #[arg(long, value_name = "N", default_value_t = 100)]
    accuracy: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures, writes and prints.
///
/// # Safety
/// No other thread may run yet.
pub(super) unsafe fn run(args: &ProfileArgs) -> Result<(), Failure> {
    let mut config = read_config(args.config.as_deref())?;
    if let Some(zoo) = &args.zoo {
        for app in &mut config.apps {
            app.zoo.clone_from(zoo);
        }
    }
    let threads = config
        .workers
        .iter()
        .map(|worker| worker.threads)
        .max()
        .unwrap_or(1);
    // SAFETY: the caller promises that no other thread runs.
    unsafe { configure_candle(threads) };
    if let Some(misfit) = candle_misfit(threads) {
        tracing::warn!("{misfit}");
    }
    let plans = PoolPlan::all(&config).map_err(Failure::input)?;
    let options = QuickOptions {
        budget: Duration::from_secs(args.seconds),
        samples_max: SAMPLES_MAX,
        ..QuickOptions::new(args.command_line())
    };
    let file = measure(&plans, &options).map_err(Failure::input)?;
    let accuracies = Accuracies::measure(&plans, args.accuracy)?;
    file.save(&args.out).map_err(Failure::input)?;
    let measurements = Measurements::new(&args.out, &file, &plans, accuracies.checked);
    measurements.print(args.json)?;
    if accuracies.misses.is_empty() {
        return Ok(());
    }
    Err(Failure::check(accuracies.misses.join("; ")))
}

// === impl ProfileArgs ===

impl ProfileArgs {
    /// As it can be typed again.
    fn command_line(&self) -> String {
        let mut words = format!("switchyard profile --seconds {}", self.seconds);
        let paths = [("config", &self.config), ("zoo", &self.zoo)];
        for (name, path) in paths {
            if let Some(path) = path {
                words += &format!(" --{name} {}", path.display());
            }
        }
        words + &format!(" --out {}", self.out.display())
    }
}
