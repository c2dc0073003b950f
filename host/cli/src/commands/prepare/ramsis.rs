//! `switchyard prepare ramsis`: the tables of the policy `ramsis`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use ramsis_prepare::tables::{Arrivals, Balancing, Batching, Objective, Set};
use ramsis_prepare::{Generator, Grid, Loads, PrepareError, Progress, QUEUE_MAX, Spec, prepare};
use serde::Serialize;
use switchyard_profile::Percentile;

use super::profiled::{self, Profiled, Wanted};
use crate::commands::failure::Failure;
use crate::commands::numbers::positive;
use crate::commands::output::check_folder;
use crate::commands::print;

/// Make the tables of RAMSIS: the variant for every state of a worker's queue, per load
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard prepare ramsis --profile ramsis_image_profiles.json --slo-ms 150 --workers 60 \\
      --loads 200:4000:200 --out target/policies/ramsis
  switchyard prepare ramsis --profile profiles/here.json --app heart --slo-ms 20 --workers 2 \\
      --loads auto:50:800 --out target/policies/ramsis/heart
  switchyard prepare ramsis --profile profiles/ramsis.json --slo-ms 150 --workers 60 \\
      --loads 2000 --objective decision --grid md --json --out /tmp/tables

FILE is a profile of `switchyard profile`, or any layout that `switchyard profile import` takes.
Of the RAMSIS artifact's summary, the variants in its `pareto` list are used unless --variants
names others.

An existing table that was made from the same inputs is kept, so that the same command continues
an interrupted run.

Each table promises an accuracy per request in time and a share of late requests. A note names
loads that the workers cannot serve and deadlines that no variant meets; their tables are made
as well.

Exit codes: 0 done, 1 a table could not be computed, 2 the profile, an option or the folder
cannot be used.")]
pub(super) struct RamsisArgs {
    /// Accuracies and latencies of the variants
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,
    /// Deadline of a request from its arrival
    #[arg(long, value_name = "N", value_parser = positive)]
    slo_ms: f64,
    /// Workers that share the load
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: u32,
    /// Requests per second of all workers: N, N,N,..., FROM:TO:STEP, or auto:FROM:TO, spaced so that
    /// neighbouring tables differ by less than 1 % of accuracy
    #[arg(long, value_name = "LOADS", value_parser = loads)]
    loads: Loads,
    /// Folder of the tables
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The app, if the profile has several
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Kind of the workers, if the profile has several
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    /// Variants to choose from [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    variants: Vec<String>,
    /// Keep variants that are slower and less accurate than another
    #[arg(long)]
    keep_dominated: bool,
    /// Percentile of the latencies to plan with
    #[arg(long, value_name = "P", value_enum, default_value = "p95")]
    percentile: PercentileName,
    /// Grid of slacks: fld:STEPS of equal length, or md, the latencies below the deadline
    #[arg(long, value_name = "GRID", value_parser = grid, default_value = "fld:100")]
    grid: Grid,
    /// Longest queue with its own states
    #[arg(long, value_name = "N", default_value_t = QUEUE_MAX, value_parser = clap::value_parser!(u32).range(1..=255))]
    queue_max: u32,
    /// Batches: the whole queue, or any part of it
    #[arg(long, value_name = "HOW", value_enum, default_value = "maximal")]
    batching: BatchingName,
    /// Maximise accuracy per query, or per decision as in the paper
    #[arg(long, value_name = "PER", value_enum, default_value = "query")]
    objective: ObjectiveName,
    /// Assignment of requests to workers
    #[arg(long, value_name = "HOW", value_enum, default_value = "round-robin")]
    balancing: BalancingName,
    /// Law of the arrivals: poisson, or gamma:SHAPE of the gaps
    #[arg(long, value_name = "LAW", value_parser = arrivals, default_value = "poisson")]
    arrivals: Arrivals,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PercentileName {
    P50,
    P95,
    P99,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BatchingName {
    Maximal,
    Variable,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ObjectiveName {
    Query,
    Decision,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BalancingName {
    RoundRobin,
    ShortestQueue,
}

/// The tables of a run.
#[derive(Serialize)]
struct Prepared {
    out: String,
    app: String,
    kind: String,
    variants: Vec<String>,
    slo_ms: f64,
    capacity: f64,
    notes: Vec<String>,
    tables: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    load: f64,
    workers: u32,
    expected_accuracy: f64,
    expected_violation_rate: f64,
    states: u64,
    seconds: f64,
    file: String,
}

/// Makes, writes and prints.
pub(super) fn run(args: &RamsisArgs) -> Result<(), Failure> {
    check_folder("--out", &args.out)?;
    let slo_us = (args.slo_ms * 1e3).round().max(1.0) as u64;
    let percentile = Percentile::from(args.percentile);
    let wanted = Wanted {
        app: args.app.as_deref(),
        kind: args.kind.as_deref(),
        variants: &args.variants,
        percentile,
        slo_us,
        zoo: None,
    };
    let profiled = profiled::read(&args.profile, &wanted)?;
    let app = profiled.app.clone();
    let generator = Generator::new(args.spec(profiled, slo_us)).map_err(failure)?;
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{prefix:>12} {wide_bar} {pos}/{len} {msg} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_prefix("tables");
    let show = |progress: Progress<'_>| {
        bar.set_length(progress.wanted as u64);
        bar.set_position(progress.done as u64);
        let kept = if progress.kept { ", kept" } else { "" };
        bar.set_message(format!("{}/s{kept}", progress.entry.load_rps));
    };
    // An interrupted run leaves only complete files behind.
    let never = AtomicBool::new(false);
    let set = prepare(&generator, &args.loads, &args.out, &show, &never).map_err(failure)?;
    bar.finish_and_clear();
    let prepared = Prepared::new(args, app, &generator, &set);
    if args.json {
        return print::json(&prepared);
    }
    print::line(format_args!("{}\n", prepared.table().trim_fmt()))?;
    for note in &prepared.notes {
        print::line(format_args!("note: {note}"))?;
    }
    print::line(format_args!("written to {}", prepared.out))
}

// === impl RamsisArgs ===

impl RamsisArgs {
    fn spec(&self, profiled: Profiled, slo_us: u64) -> Spec {
        Spec {
            app: self.app.clone(),
            kind: profiled.kind,
            percentile: match self.percentile {
                PercentileName::P50 => "p50",
                PercentileName::P95 => "p95",
                PercentileName::P99 => "p99",
            }
            .to_owned(),
            queue_max: self.queue_max,
            grid: self.grid,
            balancing: match self.balancing {
                BalancingName::RoundRobin => Balancing::RoundRobin,
                BalancingName::ShortestQueue => Balancing::ShortestQueue,
            },
            objective: match self.objective {
                ObjectiveName::Query => Objective::Query,
                ObjectiveName::Decision => Objective::Decision,
            },
            batching: match self.batching {
                BatchingName::Maximal => Batching::Maximal,
                BatchingName::Variable => Batching::Variable,
            },
            arrivals: self.arrivals,
            prune: !self.keep_dominated,
            ..Spec::new(profiled.models, slo_us, self.workers)
        }
    }
}

// === impl PercentileName ===

impl From<PercentileName> for Percentile {
    fn from(name: PercentileName) -> Self {
        match name {
            PercentileName::P50 => Self::P50,
            PercentileName::P95 => Self::P95,
            PercentileName::P99 => Self::P99,
        }
    }
}

// === impl Prepared ===

impl Prepared {
    fn new(args: &RamsisArgs, app: String, generator: &Generator, set: &Set) -> Self {
        let loads: Vec<f64> = set.tables.iter().map(|table| table.load_rps).collect();
        let notes = generator.notes(&loads);
        let line = |entry: &ramsis_prepare::tables::TableEntry| Line {
            load: entry.load_rps,
            workers: set.workers,
            expected_accuracy: entry.expected_accuracy,
            expected_violation_rate: entry.expected_violation_rate,
            states: entry.states,
            seconds: entry.seconds,
            file: entry.file.clone(),
        };
        Self {
            out: args.out.display().to_string(),
            app,
            kind: set.kind.clone(),
            variants: set.variants.clone(),
            slo_ms: args.slo_ms,
            capacity: generator.capacity_rps(),
            notes: notes.iter().map(ToString::to_string).collect(),
            tables: set.tables.iter().map(line).collect(),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_preset(comfy_table::presets::NOTHING)
            .set_header(["load", "workers", "accuracy", "late", "states", "seconds"]);
        for line in &self.tables {
            table.add_row([
                line.load.to_string(),
                line.workers.to_string(),
                format!("{:.2} %", 100.0 * line.expected_accuracy),
                format!("{:.2} %", 100.0 * line.expected_violation_rate),
                line.states.to_string(),
                format!("{:.2}", line.seconds),
            ]);
        }
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// Input errors and computation errors have different exit codes.
pub(super) fn failure(error: PrepareError) -> Failure {
    match error {
        PrepareError::RowSum { .. }
        | PrepareError::Unsettled { .. }
        | PrepareError::Cancelled
        | PrepareError::Tables(_) => Failure::check(error),
        PrepareError::Spec { .. } | PrepareError::Hole { .. } | PrepareError::Io { .. } => {
            Failure::input(error)
        }
    }
}

/// Most tables of a range.
const LOADS_MAX: f64 = 10_000.0;

fn loads(text: &str) -> Result<Loads, String> {
    let numbers = |text: &str, separator| text.split(separator).map(positive).collect();
    if let Some(range) = text.strip_prefix("auto:") {
        let ends: Vec<f64> = Result::from_iter(range.split(':').map(positive))?;
        return match ends[..] {
            [from, to] if from < to => Ok(Loads::Spaced(from, to)),
            _ => Err("must be auto:FROM:TO with FROM below TO".to_owned()),
        };
    }
    if !text.contains(':') {
        return Result::<Vec<f64>, String>::map(numbers(text, ','), Loads::Each);
    }
    let range: Result<Vec<f64>, String> = numbers(text, ':');
    match range?[..] {
        [from, to, step] if from <= to && (to - from) / step < LOADS_MAX => {
            // A whole number of steps, so that rounding adds no load.
            let steps = ((to - from) / step + 1e-9).floor() as u32;
            let loads = (0..=steps).map(|i| from + f64::from(i) * step);
            Ok(Loads::Each(loads.collect()))
        }
        _ => Err("must be FROM:TO:STEP with FROM no larger than TO, 10000 at most".to_owned()),
    }
}

fn grid(text: &str) -> Result<Grid, String> {
    match text.strip_prefix("fld:").map(str::parse) {
        Some(Ok(steps)) if steps > 0 => Ok(Grid::Fixed(steps)),
        None if text == "md" => Ok(Grid::Models),
        _ => Err("must be fld:STEPS or md".to_owned()),
    }
}

fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text.strip_prefix("gamma:") {
        Some(shape) => positive(shape).map(|shape| Arrivals::Gamma { shape }),
        None if text == "poisson" => Ok(Arrivals::Poisson),
        None => Err("must be poisson or gamma:SHAPE".to_owned()),
    }
}
