//! Measurements, one row per worker kind, variant and exit.

use std::path::Path;

use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use switchyard_models::card::ExitCard;
use switchyard_profile::{LatencyCell, ModelCell, ProfileFile, SlicingCell};

use super::accuracy::Accuracy;
use crate::commands::failure::Failure;
use crate::commands::noise::{NOISE_MARK, is_noise, noise_mark};
use crate::commands::print;
use switchyard_server::assembly::PoolPlan;

/// Batches that the table shows.
const SHOWN: [u32; 3] = [1, 8, 32];

/// All measurements of a profile.
#[derive(Debug, Serialize)]
pub(super) struct Measurements {
    /// The profile's file.
    out: String,
    rows: Vec<Row>,
    accuracies: Vec<Accuracy>,
    slicing: Vec<SlicedRow>,
}

/// The cost of slicing one variant.
#[derive(Debug, Serialize)]
struct SlicedRow {
    #[serde(flatten)]
    cell: SlicingCell,
    /// The cost is within the noise.
    is_noise: bool,
}

/// One exit of one variant on one kind of worker.
#[derive(Debug, Serialize)]
struct Row {
    kind: String,
    app: String,
    variant: String,
    exit: String,
    /// As on its card.
    accuracy: f64,
    latencies: Vec<Latency>,
    load_ms: f64,
    memory_mib: f64,
    /// Memory of the largest batch, in addition to the weights.
    activation_mib: Option<f64>,
}

/// Latency of one batch size, through all stages up to the exit.
#[derive(Debug, Serialize)]
struct Latency {
    batch: u32,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    samples: u32,
}

// === impl Measurements ===

impl Measurements {
    pub(super) fn new(
        out: &Path,
        file: &ProfileFile,
        plans: &[PoolPlan],
        accuracies: Vec<Accuracy>,
    ) -> Self {
        let rows = file
            .models
            .iter()
            .flat_map(|model| rows(file, model, plans));
        let sliced = |cell: &SlicingCell| SlicedRow {
            is_noise: is_noise(&file.latencies, cell),
            cell: cell.clone(),
        };
        Self {
            out: out.display().to_string(),
            rows: rows.collect(),
            accuracies,
            slicing: file.slicing.iter().map(sliced).collect(),
        }
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            return print::json(self);
        }
        print::line(format_args!(
            "latencies in ms: p50 / p95 / p99 of a batch\n\n{}\n",
            self.latencies().trim_fmt()
        ))?;
        if !self.accuracies.is_empty() {
            print::line(format_args!("{}\n", self.validated().trim_fmt()))?;
        }
        if !self.slicing.is_empty() {
            print::line(format_args!(
                "stage by stage, requests parked between stages, against all stages in one batch; \
                 `{NOISE_MARK}`: the difference is within the noise\n\n{}\n",
                self.sliced().trim_fmt()
            ))?;
        }
        print::line(format_args!("written to {}", self.out))
    }

    fn latencies(&self) -> Table {
        let mut header: Vec<String> = ["kind", "variant", "exit", "accuracy"]
            .map(str::to_owned)
            .to_vec();
        header.extend(SHOWN.map(|batch| format!("batch {batch}")));
        header.extend(["load ms", "MiB", "+ batch MiB"].map(str::to_owned));
        let mut table = table(header);
        for row in &self.rows {
            let mut cells = vec![
                row.kind.clone(),
                format!("{}/{}", row.app, row.variant),
                row.exit.clone(),
                format!("{:.3}", row.accuracy),
            ];
            cells.extend(SHOWN.map(|batch| row.shown(batch)));
            cells.push(format!("{:.1}", row.load_ms));
            cells.push(format!("{:.2}", row.memory_mib));
            cells.push(
                row.activation_mib
                    .map_or("-".to_owned(), |mib| format!("{mib:.2}")),
            );
            table.add_row(cells);
        }
        align(&mut table, 3);
        table
    }

    fn sliced(&self) -> Table {
        let header = [
            "kind",
            "variant",
            "batch",
            "whole us",
            "sliced us",
            "ratio",
            "us per cut",
        ];
        let mut table = table(header.map(str::to_owned).to_vec());
        let shown = self.slicing.iter();
        for SlicedRow { cell, is_noise } in shown.filter(|row| SHOWN.contains(&row.cell.batch)) {
            table.add_row([
                cell.kind.clone(),
                format!("{}/{}", cell.app, cell.variant),
                cell.batch.to_string(),
                cell.whole_us.to_string(),
                cell.sliced_us.to_string(),
                format!("{:.3}", cell.ratio),
                format!("{:.1}{}", cell.cut_us, noise_mark(*is_noise)),
            ]);
        }
        align(&mut table, 2);
        table
    }

    fn validated(&self) -> Table {
        let header = [
            "variant",
            "exit",
            "accuracy",
            "card",
            "may differ by",
            "inputs",
        ];
        let mut table = table(header.map(str::to_owned).to_vec());
        for checked in &self.accuracies {
            table.add_row([
                format!("{}/{}", checked.app, checked.variant),
                checked.exit.clone(),
                format!("{:.3}", checked.measured),
                format!("{:.3}", checked.card),
                checked
                    .tolerance
                    .map_or("-".to_owned(), |by| format!("{by:.3}")),
                checked.samples.to_string(),
            ]);
        }
        align(&mut table, 2);
        table
    }
}

fn table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_header(header);
    table
}

/// Right-aligns the columns from `from` on.
fn align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

// === rows ===

/// The exits of one variant on one kind.
fn rows(file: &ProfileFile, model: &ModelCell, plans: &[PoolPlan]) -> Vec<Row> {
    exits(model, plans)
        .iter()
        .map(|exit| Row {
            kind: model.kind.clone(),
            app: model.app.clone(),
            variant: model.variant.clone(),
            exit: exit.name.clone(),
            accuracy: exit.accuracy,
            latencies: latencies(file, model, &exit.name),
            load_ms: ms(model.load_us),
            memory_mib: mib(model.memory_bytes),
            activation_mib: model.activation_bytes.map(mib),
        })
        .collect()
}

fn exits<'a>(model: &ModelCell, plans: &'a [PoolPlan]) -> &'a [ExitCard] {
    let mut apps = plans.iter().flat_map(PoolPlan::apps);
    let variant = apps
        .find(|app| app.card.name == model.app)
        .and_then(|app| app.variant_at(&model.variant));
    variant.map_or(&[], |(variant, _)| &variant.card.exits)
}

fn latencies(file: &ProfileFile, model: &ModelCell, exit: &str) -> Vec<Latency> {
    let whole = |cell: &&LatencyCell| {
        cell.is_of(&model.kind, &model.app, &model.variant)
            && cell.from_stage == 0
            && cell.exit.as_deref() == Some(exit)
    };
    let cells = file.latencies.iter().filter(whole);
    cells
        .map(|cell| Latency {
            batch: cell.batch,
            p50_ms: ms(cell.p50_us),
            p95_ms: ms(cell.p95_us),
            p99_ms: ms(cell.p99_us),
            samples: cell.samples,
        })
        .collect()
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}

// === impl Row ===

impl Row {
    fn shown(&self, batch: u32) -> String {
        let found = self.latencies.iter().find(|latency| latency.batch == batch);
        found.map_or("-".to_owned(), |latency| {
            format!(
                "{:.2} / {:.2} / {:.2}",
                latency.p50_ms, latency.p95_ms, latency.p99_ms
            )
        })
    }
}
