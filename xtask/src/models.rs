//! Models as their frameworks export them, from `switchyard add` to the first answer.
//!
//! A Python environment in `target/models-check` exports ten networks with random weights
//! (`export.py`); each is added in an empty folder, served, and compared with onnxruntime
//! (`check.py`). Nothing is downloaded but the packages of `requirements.txt`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use comfy_table::{CellAlignment, Table};
use serde::Deserialize;
use switchyard_kit::{cargo, shell};

use crate::page::Page;
use crate::workspace::Workspace;

const EXPORT: &str = include_str!("models/export.py");
const CHECK: &str = include_str!("models/check.py");
const REQUIREMENTS: &str = include_str!("models/requirements.txt");

/// The models of `export.py`.
const MODELS: [&str; 10] = [
    "resnet50",
    "yolov8n",
    "minilm",
    "distilbert",
    "gbdt",
    "pipeline",
    "mobilenet-v3",
    "efficientnet-b0",
    "vit-b-16",
    "unet",
];

/// Rows and threads that `check.py` measures.
const MEASURED: [(u32, u32); 4] = [(1, 1), (1, 2), (8, 1), (8, 2)];

/// Longest time from `switchyard add` to the first answer.
const SECONDS_MAX: f64 = 60.0;

/// Largest difference from onnxruntime: of the value itself up to 1, of the output's largest value
/// above.
const DIFFERENCE_MAX: f64 = 1e-3;

/// Options of `models`.
#[derive(Args)]
pub(crate) struct ModelsArgs {
    /// Cargo profile of the host
    #[arg(long, default_value = "release")]
    profile: String,
    /// Check these only
    #[arg(value_parser = MODELS)]
    models: Vec<String>,
    /// Export all models anew
    #[arg(long)]
    fresh: bool,
    /// Print, and leave docs/performance.md as it is; a run of some models always does
    #[arg(long)]
    dry_run: bool,
}

/// The line that `check.py` prints.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Checked {
    Refused {
        refused: String,
    },
    Served {
        seconds: f64,
        engine: String,
        difference: f64,
        cells: Vec<Cell>,
    },
}

/// Median latencies of `rows` rows in one batch on `threads` threads.
#[derive(Debug, Deserialize)]
struct Cell {
    rows: u32,
    threads: u32,
    served_ms: f64,
    onnxruntime_ms: f64,
    rounds: u64,
}

/// Exports, adds, serves and compares; prints the table, which goes on the page as well.
///
/// # Errors
/// A build or an installation fails, or a model is refused, late or different.
pub(crate) fn run(workspace: &Workspace, args: &ModelsArgs) -> Result<()> {
    let folder = workspace.target("models-check");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let python = environment(&folder)?;
    let program = program(workspace, &args.profile)?;
    let scripts = [("export.py", EXPORT), ("check.py", CHECK)];
    for (name, text) in scripts {
        fs::write(folder.join(name), text).with_context(|| name.to_owned())?;
    }
    let all = || MODELS.iter().map(|name| (*name).to_owned()).collect();
    let chosen: Vec<String> = match args.models.is_empty() {
        true => all(),
        false => args.models.clone(),
    };
    let mut rows = Vec::new();
    for name in chosen {
        let model = folder.join("out").join(&name);
        eprintln!("== {name}");
        if args.fresh && model.exists() {
            fs::remove_dir_all(&model).with_context(|| model.display().to_string())?;
        }
        if !model.join("case.json").is_file() {
            let mut export = Command::new(&python);
            shell::run(export.arg(folder.join("export.py")).arg(&name).arg(&model))?;
        }
        let mut check = Command::new(&python);
        check.arg(folder.join("check.py")).arg(&model).arg(&program);
        rows.push((name, checked(&mut check)?));
    }
    let printed = format!(
        "{}\n\nseconds: from `switchyard add` in an empty folder to the first answer over HTTP. \
         difference: from onnxruntime,\nrelative where an output's largest value is above 1. \
         Milliseconds: median, in turns, without HTTP.\nonnxrt: onnxruntime without spinning threads. \
         rounds: the fewest of a row's cells.\n{}",
        table(&rows).trim_fmt(),
        summary(&rows)
    );
    println!("{printed}");
    if args.models.is_empty() && !args.dry_run {
        let mut page = Page::open(&workspace.root.join("docs/performance.md"))?;
        page.put("models", "cargo xtask models", &printed)?;
        page.save()?;
    }
    let misses: Vec<String> = rows
        .iter()
        .filter_map(|(name, row)| miss(name, row))
        .collect();
    match misses.is_empty() {
        true => Ok(()),
        false => bail!("{}", misses.join("; ")),
    }
}

/// The environment's Python; installs the packages unless they are those of the last run.
fn environment(folder: &Path) -> Result<PathBuf> {
    let venv = folder.join("venv");
    let (python, stamp) = (venv.join("bin/python"), venv.join("requirements.txt"));
    let installed = fs::read_to_string(&stamp).unwrap_or_default();
    if installed == REQUIREMENTS {
        return Ok(python);
    }
    let wanted = folder.join("requirements.txt");
    fs::write(&wanted, REQUIREMENTS).with_context(|| wanted.display().to_string())?;
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))
        .context("needs Python 3.11 or later with venv")?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--no-cache-dir", "-r"]);
    shell::run(install.arg(&wanted)).context("needs PyPI, and 7 GB in target/models-check")?;
    fs::write(&stamp, REQUIREMENTS).with_context(|| stamp.display().to_string())?;
    Ok(python)
}

/// Builds the host.
fn program(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let mut build = cargo::host(&workspace.root);
    build.args(["build", "--profile", profile]);
    // A single package selects other features of its dependencies, which would be built again.
    build.args(["--workspace", "--bin", "switchyard"]);
    let artifacts = cargo::build(&mut build)?;
    let program = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
    Ok(PathBuf::from(program))
}

fn checked(check: &mut Command) -> Result<Checked> {
    let output = check.output().with_context(|| shell::line(check))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{}: {text}", shell::line(check));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{}: {text}", shell::line(check)))
}

fn table(rows: &[(String, Checked)]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let fixed = ["model", "engine", "seconds", "difference"].map(str::to_owned);
    let measured = MEASURED.iter().flat_map(|(rows, threads)| {
        let of = format!("{rows} x {threads}t");
        [format!("{of} ms"), "onnxrt".to_owned(), "ratio".to_owned()]
    });
    table.set_header(
        fixed
            .into_iter()
            .chain(measured)
            .chain(["rounds".to_owned()]),
    );
    for (name, row) in rows {
        match row {
            Checked::Refused { refused } => table.add_row([name, &format!("refused: {refused}")]),
            Checked::Served {
                seconds,
                engine,
                difference,
                cells,
            } => {
                let fixed = [
                    name.clone(),
                    engine.clone(),
                    format!("{seconds:.1}"),
                    format!("{difference:.1e}"),
                ];
                let measured = MEASURED.iter().flat_map(|&at| latencies(cells, at));
                let rounds = cells.iter().map(|cell| cell.rounds).min();
                let rounds = rounds.map(|rounds| rounds.to_string());
                table.add_row(fixed.into_iter().chain(measured).chain(rounds))
            }
        };
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The server's and onnxruntime's milliseconds and their ratio; empty if the model takes no such batch.
fn latencies(cells: &[Cell], at: (u32, u32)) -> [String; 3] {
    let cell = cells.iter().find(|cell| (cell.rows, cell.threads) == at);
    cell.map_or_else(Default::default, |cell| {
        [
            format!("{:.3}", cell.served_ms),
            format!("{:.3}", cell.onnxruntime_ms),
            format!("{:.2}", cell.ratio()),
        ]
    })
}

/// Cells at or below onnxruntime's time, and the worst.
fn summary(rows: &[(String, Checked)]) -> String {
    let cells = rows.iter().flat_map(|(name, row)| {
        let cells = match row {
            Checked::Served { cells, .. } => cells.as_slice(),
            Checked::Refused { .. } => &[],
        };
        cells.iter().map(move |cell| (cell.ratio(), name, cell))
    });
    let low = cells.clone().filter(|(ratio, ..)| *ratio <= 1.0).count();
    let count = cells.clone().count();
    match cells.max_by(|(a, ..), (b, ..)| a.total_cmp(b)) {
        Some((ratio, name, cell)) => format!(
            "{low} of {count} cells at or below onnxruntime; worst {ratio:.2}, {name}, {} x {}t",
            cell.rows, cell.threads
        ),
        None => "no model was served".to_owned(),
    }
}

/// Why a model fails the check.
fn miss(name: &str, row: &Checked) -> Option<String> {
    match row {
        Checked::Refused { refused } => Some(format!("{name}: {refused}")),
        Checked::Served { seconds, .. } if *seconds > SECONDS_MAX => Some(format!(
            "{name}: {seconds:.1} s to the first answer, must be {SECONDS_MAX} s"
        )),
        Checked::Served { difference, .. } if *difference > DIFFERENCE_MAX => Some(format!(
            "{name}: differs by {difference:.1e} from onnxruntime, must be {DIFFERENCE_MAX:.0e}"
        )),
        Checked::Served { .. } => None,
    }
}

// === impl Cell ===

impl Cell {
    /// Of onnxruntime's time.
    fn ratio(&self) -> f64 {
        self.served_ms / self.onnxruntime_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Checked {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn late_different_and_refused_models_are_misses() {
        let served = |seconds: &str, difference: &str| {
            read(&format!(
                r#"{{"seconds": {seconds}, "engine": "rten", "difference": {difference},
                    "cells": [{{"rows": 1, "threads": 2, "served_ms": 2.5, "onnxruntime_ms": 2.0,
                    "rounds": 10}}]}}"#
            ))
        };
        assert_eq!(miss("a", &served("59.9", "1e-3")), None);
        assert!(miss("a", &served("60.1", "0")).unwrap().contains("60.1 s"));
        assert!(
            miss("a", &served("1", "2e-3"))
                .unwrap()
                .contains("differs by 2.0e-3")
        );
        assert_eq!(miss("a", &read(r#"{"refused": "no"}"#)).unwrap(), "a: no");
        let printed = table(&[("a".to_owned(), served("1.26", "0.00012"))]).to_string();
        assert!(
            printed.contains("1.3") && printed.contains("1.2e-4"),
            "{printed}"
        );
        assert!(printed.contains("1.25"), "{printed}");
    }
}
