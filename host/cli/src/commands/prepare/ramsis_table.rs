//! `switchyard prepare ramsis-table`: one more table for existing sets, as a server's
//! `[pool.prepare]` runs it (RAMSIS section 3).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use ramsis_prepare::tables::{INDEX_FILE, Set};
use ramsis_prepare::{Generator, Loads, Spec, prepare};
use switchyard_profile::Percentile;

use super::profiled::{self, Wanted};
use super::ramsis::failure;
use crate::commands::failure::Failure;
use crate::commands::numbers::positive;
use crate::commands::output::check_folder;
use crate::commands::print;

/// Add a table for one load to existing sets of RAMSIS tables
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard prepare ramsis-table --profile profiles/here.json --app heart --load 450 \\
      --sets target/policies/ramsis

A server runs it when the load grows, configured as
  [pool.prepare]
  command = [\"{switchyard}\", \"prepare\", \"ramsis-table\", \"--profile\", \"{profile}\",
      \"--zoo\", \"{zoo}\", \"--sets\", \"{artifacts}\", \"--app\", \"{app}\",
      \"--load\", \"{load_rps}\"]

Sets of other apps and sets with a table for that load or a higher one stay as they are. Tables
stop at the capacity of the workers. Tables of another profile are made again.

Exit codes: 0 done, 1 a table could not be computed, 2 the profile or a set cannot be used.")]
pub(super) struct RamsisTableArgs {
    /// Accuracies and latencies of the variants
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,
    /// Folder of apps whose cards give the accuracies that the profile lacks
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Folder of a set, or of several sets
    #[arg(long, value_name = "DIR")]
    sets: PathBuf,
    /// The app whose sets get the table [default: the app that each set names]
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Requests per second of all workers
    #[arg(long, value_name = "N", value_parser = positive)]
    load: f64,
}

/// Extends every set of the app.
pub(super) fn run(args: &RamsisTableArgs) -> Result<(), Failure> {
    let folders = folders(&args.sets)?;
    for folder in &folders {
        check_folder("--sets", folder)?;
    }
    for folder in folders {
        let set = read(&folder)?;
        let other = args.app.as_ref().zip(set.app.as_ref());
        if other.is_some_and(|(wanted, app)| wanted != app) {
            continue;
        }
        let outcome = args.extend(&folder, &set)?;
        print::line(format_args!("{}: {outcome}", folder.display()))?;
    }
    Ok(())
}

// === impl RamsisTableArgs ===

impl RamsisTableArgs {
    /// Describes the set after the run in one line.
    fn extend(&self, folder: &Path, set: &Set) -> Result<String, Failure> {
        let highest = set.tables.last().map_or(0.0, |table| table.load_rps);
        if self.load <= highest {
            return Ok(format!("has a table for {highest}/s already"));
        }
        let generator = self.generator(set)?;
        let capacity = generator.capacity_rps();
        if highest >= capacity {
            return Ok(format!("its workers serve {capacity:.0}/s at most"));
        }
        let load = self.load.min(capacity.ceil());
        let before = set.tables.iter().map(|table| table.load_rps);
        let loads = Loads::Each(before.chain([load]).collect());
        // An interrupted run leaves only complete files behind.
        let never = AtomicBool::new(false);
        let made = prepare(&generator, &loads, folder, &|_| {}, &never).map_err(failure)?;
        let Some(entry) = made.tables.last() else {
            return Err(Failure::check("the set has no table"));
        };
        Ok(format!(
            "table for {}/s: accuracy {:.2} %, late {:.2} %",
            entry.load_rps,
            100.0 * entry.expected_accuracy,
            100.0 * entry.expected_violation_rate,
        ))
    }

    fn generator(&self, set: &Set) -> Result<Generator, Failure> {
        let percentile = match set.percentile.as_str() {
            "p50" => Percentile::P50,
            "p95" => Percentile::P95,
            "p99" => Percentile::P99,
            other => {
                let reason = format!("{INDEX_FILE}: percentile: {other}, must be p50, p95 or p99");
                return Err(Failure::input(reason));
            }
        };
        let wanted = Wanted {
            app: set.app.as_deref().or(self.app.as_deref()),
            kind: Some(&set.kind),
            variants: &set.variants,
            percentile,
            slo_us: set.slo_us,
            zoo: self.zoo.as_deref(),
        };
        let profiled = profiled::read(&self.profile, &wanted)?;
        // A table counts its variants in the set's order.
        let mut models = profiled.models;
        models.sort_by_key(|model| set.variants.iter().position(|name| *name == model.name));
        Generator::new(Spec::of_set(set, models)).map_err(failure)
    }
}

/// The folder itself if it is a set, otherwise the sets in it, by name.
fn folders(sets: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_set = |folder: &Path| folder.join(INDEX_FILE).is_file();
    if is_set(sets) {
        return Ok(vec![sets.to_path_buf()]);
    }
    let refused = |reason: String| Failure::input(format!("{}: {reason}", sets.display()));
    let entries = fs::read_dir(sets).map_err(|error| refused(error.to_string()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| is_set(path))
        .collect();
    found.sort();
    match found.is_empty() {
        true => Err(refused(format!(
            "no {INDEX_FILE} in it or in a folder of it; `switchyard prepare ramsis` makes a set"
        ))),
        false => Ok(found),
    }
}

fn read(folder: &Path) -> Result<Set, Failure> {
    let file = folder.join(INDEX_FILE);
    let refused = |reason: String| Failure::input(format!("{}: {reason}", file.display()));
    let text = fs::read_to_string(&file).map_err(|error| refused(error.to_string()))?;
    Set::parse(&text).map_err(|error| refused(error.to_string()))
}
