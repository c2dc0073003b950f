//! `switchyard profile import`: a profile from measurements of another program.

use std::path::PathBuf;

use clap::Args;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use switchyard_executor::versions;
use switchyard_profile::ProfileFile;
use switchyard_profile::import::{ImportOptions, import};

use super::between::add_between;
use crate::commands::failure::Failure;
use crate::commands::numbers::positive;
use crate::commands::output::{Folders, check_file};
use crate::commands::print;

/// Make a profile from measurements of another program
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard profile import ramsis/profiles/image_cloud_cpu --out profiles/ramsis.json
  switchyard profile import ramsis_image_profiles.json --out profiles/ramsis.json --slo-ms 150
  switchyard profile import mine.csv --out profiles/mine.json --app text --kind gpu
  switchyard simulate --profile profiles/ramsis.json --workers 60 --policy edf \\
      --workload poisson:2000

Recognised are the folder of the public RAMSIS artifact (MODEL/MODEL_bsize-B_profile.json, each
a list of seconds, with a table of accuracies in it or in a folder above it: accuracy.csv,
accuracy.json or the artifact's own image_models.py), a summary of it in one file, and
comma-separated values with a line per variant and batch. profiles/README.md has the columns.

An imported profile brings its own apps, so that `simulate` needs no configuration. A server
cannot serve from it.

Exit codes: 0 done, 2 a file cannot be read; the message names file, line and field.")]
pub(super) struct ImportArgs {
    /// A folder, or a .json or .csv file
    #[arg(value_name = "FILE_OR_DIR")]
    from: PathBuf,
    /// File of the profile
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Name of the variants' app, if the layout has none
    #[arg(long, value_name = "NAME", default_value = "image")]
    app: String,
    /// Name of the worker kind, if the layout has none
    #[arg(long, value_name = "NAME", default_value = "imported")]
    kind: String,
    /// Deadline of the app's requests
    #[arg(long, value_name = "N", default_value_t = 150.0, value_parser = positive)]
    slo_ms: f64,
    /// Table of accuracies (.csv, .json or .py), for a folder
    #[arg(long, value_name = "FILE")]
    accuracy: Option<PathBuf>,
    /// Take only this variant; repeat the option for more
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Also make variants between neighbours in accuracy, N percentage points apart
    #[arg(long, value_name = "N", value_parser = positive)]
    between: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The imported variants.
#[derive(Serialize)]
struct Imported {
    layout: &'static str,
    out: String,
    variants: Vec<Variant>,
}

#[derive(Serialize)]
struct Variant {
    kind: String,
    app: String,
    variant: String,
    accuracy: Option<f64>,
    batch_max: u32,
    measured: usize,
    filled_in: usize,
    p95_ms_of_1: Option<f64>,
    p95_ms_of_largest: Option<f64>,
}

/// Imports, writes and prints.
pub(super) fn run(args: &ImportArgs) -> Result<(), Failure> {
    check_file("--out", &args.out, Folders::Made)?;
    let options = ImportOptions {
        app: args.app.clone(),
        kind: args.kind.clone(),
        slo_us: (args.slo_ms * 1e3).round().max(1.0) as u64,
        accuracy: args.accuracy.clone(),
        variants: args.variants.clone(),
        command: args.command_line(),
        versions: versions(),
    };
    let (mut file, layout) = import(&args.from, &options).map_err(Failure::input)?;
    if let Some(percent) = args.between {
        add_between(&mut file, percent / 100.0);
    }
    file.save(&args.out).map_err(Failure::input)?;
    let imported = Imported {
        layout: layout.label(),
        out: args.out.display().to_string(),
        variants: variants(&file),
    };
    if args.json {
        return print::json(&imported);
    }
    print::line(format_args!("{}\n", imported.table().trim_fmt()))?;
    print::line(format_args!(
        "{}, written to {}",
        imported.layout, imported.out
    ))
}

// === impl ImportArgs ===

impl ImportArgs {
    /// The command line, to be typed again.
    fn command_line(&self) -> String {
        let Self {
            from,
            out,
            app,
            kind,
            slo_ms,
            ..
        } = self;
        let mut words = format!(
            "switchyard profile import {} --app {app} --kind {kind} --slo-ms {slo_ms}",
            from.display()
        );
        if let Some(accuracy) = &self.accuracy {
            words += &format!(" --accuracy {}", accuracy.display());
        }
        for variant in &self.variants {
            words += &format!(" --variant {variant}");
        }
        if let Some(percent) = self.between {
            words += &format!(" --between {percent}");
        }
        words + &format!(" --out {}", out.display())
    }
}

// === impl Imported ===

impl Imported {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_preset(comfy_table::presets::NOTHING)
            .set_header([
                "kind",
                "variant",
                "accuracy",
                "largest batch",
                "measured",
                "filled in",
                "p95 ms of 1",
                "of the largest",
            ]);
        let shown = |number: Option<f64>, digits: usize| match number {
            Some(number) => format!("{number:.digits$}"),
            None => "-".to_owned(),
        };
        for variant in &self.variants {
            table.add_row([
                variant.kind.clone(),
                format!("{}/{}", variant.app, variant.variant),
                shown(variant.accuracy, 4),
                variant.batch_max.to_string(),
                variant.measured.to_string(),
                variant.filled_in.to_string(),
                shown(variant.p95_ms_of_1, 2),
                shown(variant.p95_ms_of_largest, 2),
            ]);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

fn variants(file: &ProfileFile) -> Vec<Variant> {
    let of = |model: &switchyard_profile::ModelCell| {
        let cells: Vec<_> = file
            .latencies
            .iter()
            .filter(|cell| cell.is_of(&model.kind, &model.app, &model.variant))
            .collect();
        let accuracy = file
            .accuracies
            .iter()
            .find(|cell| (&cell.app, &cell.variant) == (&model.app, &model.variant));
        let ms = |us: u64| us as f64 / 1e3;
        let one = cells.iter().find(|cell| cell.batch == 1);
        let largest = cells.iter().max_by_key(|cell| cell.batch);
        Variant {
            kind: model.kind.clone(),
            app: model.app.clone(),
            variant: model.variant.clone(),
            accuracy: accuracy.map(|cell| cell.accuracy),
            batch_max: largest.map_or(0, |cell| cell.batch),
            measured: cells.iter().filter(|cell| cell.samples > 0).count(),
            filled_in: cells.iter().filter(|cell| cell.samples == 0).count(),
            p95_ms_of_1: one.map(|cell| ms(cell.p95_us)),
            p95_ms_of_largest: largest.map(|cell| ms(cell.p95_us)),
        }
    };
    file.models.iter().map(of).collect()
}
