//! `switchyard prepare selection`: ModelSwitching's response latencies.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use indicatif::ProgressBar;
use selection::responses::{FILE, Measured, Responses};
use selection_prepare::{Batching, ResponseOptions, responses};
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Micros;
use switchyard_profile::{Percentile, ProfileFile};

use crate::commands::draft::write_file;
use crate::commands::failure::Failure;
use crate::commands::numbers::positive;
use crate::commands::output::check_folder;
use crate::commands::print;
use switchyard_server::assembly::{Measured as MeasuredProfile, PoolPlan};
use switchyard_simulate::shipped::read_config;

/// Simulate each model alone under each load, for ModelSwitching
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard prepare selection --profile profiles/ramsis.json --slo-ms 150 --workers 60,70,80 \\
      --loads 200:4000:100 --out target/policies/selection/image
  switchyard simulate --profile profiles/ramsis.json --workers 60 --workload poisson:2000 \\
      --policy 'selection{algorithm = \"model-switching\", responses = \"image\"}'

Writes DIR/responses.json: for each variant, number of workers and load, the 99th percentile of
the time from arrival to answer if that variant answers all requests. Service times are the
profile's 95th percentiles, arrivals are Poisson; the same command writes the same file.

Exit codes: 0 done, 2 the profile or an option cannot be used.")]
pub(super) struct SelectionArgs {
    /// Profile with the latencies, of any machine
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,
    /// Configuration whose first pool is used, if the profile brings no apps [default: as for
    /// `serve`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Deadline of requests from their arrival [default: each app's SLO]
    #[arg(long, value_name = "N", value_parser = positive)]
    slo_ms: Option<f64>,
    /// Numbers of workers
    #[arg(long, value_name = "N,...", value_delimiter = ',', required = true)]
    workers: Vec<u32>,
    /// Loads in requests per second: FROM:TO:STEP, or a list
    #[arg(long, value_name = "LOADS")]
    loads: String,
    /// Largest batches: `published`, those of the model that Jellyfish+ would run, or `own`, each
    /// model's
    #[arg(long, value_name = "HOW", value_enum, default_value = "published")]
    batching: BatchingName,
    /// Virtual seconds in which requests arrive under each load
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = positive)]
    seconds: f64,
    /// Seed of the arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Folder of the file; made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BatchingName {
    Published,
    Own,
}

/// Measures, writes and prints.
pub(super) fn run(args: &SelectionArgs) -> Result<(), Failure> {
    check_folder("--out", &args.out)?;
    let catalog = args.catalog()?;
    let options = ResponseOptions {
        workers: args.workers.clone(),
        loads_rps: loads(&args.loads).map_err(|why| Failure::input(format!("--loads: {why}")))?,
        batching: match args.batching {
            BatchingName::Published => Batching::Published,
            BatchingName::Own => Batching::Own,
        },
        seconds: args.seconds,
        seed: args.seed,
        ..ResponseOptions::default()
    };
    let runs = options.workers.len() * options.loads_rps.len() * catalog.variants.len();
    let bar = ProgressBar::new(runs as u64);
    let made = responses(&catalog, &options, &mut || bar.inc(1));
    bar.finish_and_clear();
    let made = made.map_err(Failure::input)?;
    let json = serde_json::to_string_pretty(&made).map_err(Failure::check)?;
    let file = args.out.join(FILE);
    let written = fs::create_dir_all(&args.out).and_then(|()| write_file(&file, &json));
    written.map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    if args.json {
        return print::line(json);
    }
    print::line(format_args!(
        "{}\n\nwritten to {}",
        table(&made).trim_fmt(),
        file.display()
    ))
}

// === impl SelectionArgs ===

impl SelectionArgs {
    /// The apps that the profile brings, or those of the configured pool.
    fn catalog(&self) -> Result<Catalog, Failure> {
        let file = ProfileFile::load(&self.profile).map_err(Failure::input)?;
        let named = |error: &dyn std::fmt::Display| {
            Failure::input(format!("{}: {error}", self.profile.display()))
        };
        let mut catalog = if file.has_apps() {
            file.to_catalog(Percentile::P95)
                .map_err(|error| named(&error))?
        } else {
            let config = read_config(self.config.as_deref())?;
            let plan = PoolPlan::first(&config).map_err(Failure::input)?;
            let measured = MeasuredProfile::elsewhere(file, Percentile::P95, &self.profile);
            plan.catalog(&measured).map_err(|error| named(&error))?
        };
        if let Some(slo_ms) = self.slo_ms {
            for app in &mut catalog.apps {
                app.slo = Micros((slo_ms * 1e3).round().max(1.0) as u64);
            }
        }
        Ok(catalog)
    }
}

/// `FROM:TO:STEP`, or numbers with commas between.
fn loads(text: &str) -> Result<Vec<f64>, String> {
    let number = |word: &str| {
        let number: f64 = word
            .trim()
            .parse()
            .map_err(|_| format!("`{word}` is not a number"))?;
        Ok::<f64, String>(number)
    };
    let parts: Vec<&str> = text.split(':').collect();
    let [from, to, step] = match *parts.as_slice() {
        [list] => return list.split(',').map(number).collect(),
        [from, to, step] => [number(from)?, number(to)?, number(step)?],
        _ => return Err("must be FROM:TO:STEP or a list".to_owned()),
    };
    let count = ((to - from) / step + 1e-9).floor();
    if !(step > 0.0 && (0.0..10_000.0).contains(&count)) {
        return Err("FROM:TO:STEP must make 1 to 10000 loads".to_owned());
    }
    Ok((0..=count as u32)
        .map(|i| from + step * f64::from(i))
        .collect())
}

/// The highest load at which each variant answers in time.
fn table(made: &Responses) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header([
        "app",
        "workers",
        "variant",
        "in time up to",
        "largest batch",
    ]);
    for of in &made.measured {
        for variant in &of.variants {
            let below = |us: &Option<u64>| us.is_some_and(|us| us < of.slo_us);
            let highest = variant.response_us.iter().rposition(below);
            table.add_row([
                of.app.clone(),
                of.workers.to_string(),
                variant.variant.clone(),
                highest.map_or("-".to_owned(), |at| shown(of, at)),
                highest
                    .and_then(|at| variant.batch_max.get(at))
                    .map_or("-".to_owned(), ToString::to_string),
            ]);
        }
    }
    for column in [1, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn shown(of: &Measured, at: usize) -> String {
    let load = of.loads_rps.get(at).copied().unwrap_or_default();
    format!("{load} /s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_as_they_are_typed() {
        assert_eq!(loads("400"), Ok(vec![400.0]));
        assert_eq!(loads("400, 800.5"), Ok(vec![400.0, 800.5]));
        assert_eq!(loads("200:800:300"), Ok(vec![200.0, 500.0, 800.0]));
        for wrong in ["", "a", "1:2", "1:2:0", "2:1:1", "1:2:3:4"] {
            assert!(loads(wrong).is_err(), "{wrong}");
        }
    }
}
