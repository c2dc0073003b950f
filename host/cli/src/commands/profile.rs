//! `switchyard profile`: measure latency, memory and accuracy of every variant on this machine.

mod accuracy;
mod between;
mod import;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use switchyard_executor::candle_threads::{candle_misfit, configure_candle};
use switchyard_executor::versions;
use switchyard_profile::{
    Machine, MeasureOptions, Measurement, MeasurementId, ProfileFile, Provenance,
    UnfinishedMeasurement,
};

use self::accuracy::Accuracies;
use self::table::Measurements;
use super::failure::Failure;
use super::output::{Folders, check_file};
use super::signals;
use switchyard_server::assembly::{PoolPlan, measure};
use switchyard_server::shutdown::Cancel;
use switchyard_simulate::shipped::read_config;

/// Least share of the budget for latencies. Longer validation exceeds the budget.
const LATENCIES_MIN: f64 = 0.5;

/// Measure latencies, load times, memory and accuracy on this machine
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  switchyard profile --out profiles/here.json
  switchyard profile --out /tmp/profile.json --config switchyard.toml --budget 8m
  switchyard profile --out /tmp/profile.json --zoo models/zoo --json
  switchyard profile import ramsis/profiles --out profiles/ramsis.json

Measures every variant of every app on every kind of worker in the configuration, through the
executor that serves. Other work on the machine makes the latencies longer. Accuracies are
measured on part of each app's validation set and compared with the card; for an app without a
data generator the profile has the card's values, marked as such.

The same command continues an interrupted run, from FILE.unfinished.

Exit codes: 0 done, 1 an accuracy differs from the card or the run was interrupted, 2 the
configuration, the zoo or the output cannot be used.")]
pub(super) struct ProfileArgs {
    #[command(subcommand)]
    command: Option<ProfileCommand>,
    /// File of the profile, as profile.file names it
    #[arg(long, value_name = "FILE", required = true)]
    out: Option<PathBuf>,
    /// Configuration file [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of models; overrides every app's zoo
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Time for all measurements, such as 90s or 8m; latencies get at least half of it
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = budget)]
    budget: Duration,
    /// The same budget in seconds
    #[arg(long, value_name = "N", conflicts_with = "budget", value_parser = clap::value_parser!(u64).range(1..=36_000))]
    seconds: Option<u64>,
    /// Batch sizes, such as 1,2,3,4,10, up to each variant's largest, which is always added
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32], value_parser = clap::value_parser!(u32).range(1..))]
    batches: Vec<u32>,
    /// Validation inputs per class for accuracies; 0: the cards' accuracies
    #[arg(long, value_name = "N", default_value_t = 100)]
    accuracy: usize,
    /// Discard the measurements of an interrupted run
    #[arg(long)]
    fresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    Import(import::ImportArgs),
}

/// Measures, writes and prints.
pub(super) fn run(args: &ProfileArgs) -> Result<(), Failure> {
    if let Some(ProfileCommand::Import(args)) = &args.command {
        return import::run(args);
    }
    let out = args.out.clone().unwrap_or_default();
    check_file("--out", &out, Folders::Made)?;
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
    configure_candle(threads);
    if let Some(misfit) = candle_misfit(threads) {
        tracing::warn!("{misfit}");
    }
    let plans = PoolPlan::all(&config).map_err(Failure::input)?;
    let cancel = cancelled_by_signals().map_err(Failure::input)?;
    let unfinished = UnfinishedMeasurement::new(&out, args.id(&plans));
    let measurement = args.kept(&unfinished);
    let mut file = args.measure(&plans, measurement, &unfinished, &cancel)?;
    for (kind, power_w) in plans.iter().flat_map(PoolPlan::declared_power_w) {
        file.declare_power(&kind, power_w);
    }
    file.save(&out).map_err(Failure::input)?;
    unfinished.remove();
    let accuracies = Accuracies::check(&plans, &file.accuracies);
    let measurements = Measurements::new(&out, &file, &plans, accuracies.checked);
    measurements.print(args.json)?;
    if accuracies.misses.is_empty() {
        return Ok(());
    }
    Err(Failure::check(accuracies.misses.join("; ")))
}

// === impl ProfileArgs ===

impl ProfileArgs {
    fn budget(&self) -> Duration {
        self.seconds.map_or(self.budget, Duration::from_secs)
    }

    /// The command line, to be typed again.
    fn command_line(&self) -> String {
        let mut words = match self.seconds {
            Some(seconds) => format!("switchyard profile --seconds {seconds}"),
            None => {
                let budget = humantime::format_duration(self.budget).to_string();
                format!("switchyard profile --budget {}", budget.replace(' ', ""))
            }
        };
        words += &format!(" --accuracy {}", self.accuracy);
        let batches = self.batches.iter().map(u32::to_string);
        words += &format!(" --batches {}", batches.collect::<Vec<_>>().join(","));
        let paths = [
            ("config", &self.config),
            ("zoo", &self.zoo),
            ("out", &self.out),
        ];
        for (name, path) in paths {
            if let Some(path) = path {
                words += &format!(" --{name} {}", path.display());
            }
        }
        words
    }

    fn id(&self, plans: &[PoolPlan]) -> MeasurementId {
        MeasurementId {
            command: self.command_line(),
            machine: Machine::detect(),
            versions: versions(),
            subjects: plans.iter().flat_map(PoolPlan::subjects).collect(),
        }
    }

    /// The measurements of an interrupted run of the same command.
    fn kept(&self, unfinished: &UnfinishedMeasurement) -> Measurement {
        if self.fresh {
            return Measurement::default();
        }
        match unfinished.read() {
            Ok(None) => Measurement::default(),
            Ok(Some(kept)) => {
                let (cells, file) = (kept.cells(), unfinished.path().display());
                tracing::info!(%file, cells, "continuing an interrupted run");
                kept
            }
            Err(reason) => {
                tracing::warn!(
                    reason,
                    "measurements of another command or machine are discarded"
                );
                Measurement::default()
            }
        }
    }

    fn measure(
        &self,
        plans: &[PoolPlan],
        mut measurement: Measurement,
        unfinished: &UnfinishedMeasurement,
        cancel: &Cancel,
    ) -> Result<ProfileFile, Failure> {
        accuracy::measure(plans, self.accuracy, &mut measurement, unfinished, cancel)?;
        let budget = self.budget();
        let left = budget.saturating_sub(measurement.spent(accuracy::ACCOUNT));
        let options = MeasureOptions {
            batches: self.batches.clone(),
            ..MeasureOptions::thorough(left.max(budget.mul_f64(LATENCIES_MIN)))
        };
        let measured = measure(plans, &options, &mut measurement, Some(unfinished), cancel);
        measured.map_err(|error| {
            if cancel.is_cancelled() {
                Failure::check(format!("{error}; the same command continues"))
            } else {
                Failure::input(error)
            }
        })?;
        let mut made = Provenance::now(self.command_line(), versions());
        if self.accuracy == 0 {
            made.notes.push("accuracies are the cards'".to_owned());
        }
        Ok(measurement.to_file(made, Machine::detect()))
    }
}

/// Set by the first signal; the second ends the process.
fn cancelled_by_signals() -> std::io::Result<Cancel> {
    let cancel = Cancel::default();
    let told = cancel.clone();
    signals::for_each(move |signal| {
        if told.is_cancelled() {
            signals::exit(signal);
        }
        told.cancel();
        tracing::info!("stopping; a second signal stops at once");
    })?;
    Ok(cancel)
}

/// A time such as `90s` or `8m`.
fn budget(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_secs(1) => Ok(time),
        Ok(_) => Err("must be at least 1s".to_owned()),
        Err(error) => Err(format!("{error}; such as 90s or 8m")),
    }
}
