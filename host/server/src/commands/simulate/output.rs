//! Results of a simulation, for people and for programs.

use std::path::Path;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use switchyard_sim::Outcome;
use switchyard_sim::metrics::{Estimates, Report};

use crate::commands::Failure;

/// What was simulated.
#[derive(Debug, Serialize)]
pub(super) struct Meta {
    pub(super) workload: String,
    pub(super) profile: String,
    /// Virtual seconds in which requests arrived.
    pub(super) seconds: f64,
    pub(super) seeds: Vec<u64>,
    /// Workers, where the sweep does not vary them.
    pub(super) workers: usize,
    /// The parameter that was varied.
    pub(super) sweep: Option<String>,
}

/// What came of it.
pub(super) struct Results {
    pub(super) meta: Meta,
    pub(super) outcomes: Vec<Outcome>,
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    meta: &'a Meta,
    runs: Vec<Run<'a>>,
}

/// One policy at one point.
#[derive(Serialize)]
struct Run<'a> {
    point: &'a str,
    policy: &'a str,
    /// Means over the seeds and half their 95 % confidence intervals.
    estimates: &'a Estimates,
    /// One per seed.
    reports: &'a [Report],
}

/// A column: its heading, the metric, what it is multiplied with, and its decimals.
type Column = (&'static str, &'static str, f64, usize);

const COLUMNS: [Column; 9] = [
    ("requests", "arrivals", 1.0, 0),
    ("goodput/s", "goodput_per_s", 1.0, 1),
    ("accuracy", "accuracy_expected", 1.0, 3),
    ("utility", "utility", 1.0, 3),
    ("late %", "violation_ratio", 100.0, 1),
    ("p50 ms", "latency_p50_ms", 1.0, 1),
    ("p95 ms", "latency_p95_ms", 1.0, 1),
    ("p99 ms", "latency_p99_ms", 1.0, 1),
    ("batch", "batch_size_mean", 1.0, 1),
];

// === impl Results ===

impl Results {
    /// The table to stdout, and JSON where it was asked for.
    pub(super) fn print(&self, json: Option<&Path>) -> Result<(), Failure> {
        let text = match json {
            None => None,
            Some(_) => Some(serde_json::to_string_pretty(&self.json()).map_err(Failure::check)?),
        };
        if let (Some(path), Some(text)) = (json, &text) {
            if path == Path::new("-") {
                println!("{text}");
                return Ok(());
            }
            let failed = |error| Failure::input(format!("{}: {error}", path.display()));
            std::fs::write(path, text).map_err(failed)?;
        }
        println!("{}", self.table());
        Ok(())
    }

    fn json(&self) -> Json<'_> {
        let runs = self.outcomes.iter().map(|outcome| Run {
            point: &outcome.point,
            policy: &outcome.policy,
            estimates: &outcome.estimates,
            reports: &outcome.reports,
        });
        Json {
            meta: &self.meta,
            runs: runs.collect(),
        }
    }

    fn table(&self) -> Table {
        let swept = self.meta.sweep.is_some();
        let mut table = Table::new();
        table.load_preset(NOTHING);
        let names = swept.then_some("point").into_iter().chain(["policy"]);
        let leading = 1 + usize::from(swept);
        table.set_header(names.chain(COLUMNS.map(|column| column.0)));
        for outcome in &self.outcomes {
            let names = swept.then(|| outcome.point.clone()).into_iter();
            let names = names.chain([outcome.policy.clone()]);
            let cells = COLUMNS.map(|column| cell(&outcome.estimates, column));
            table.add_row(names.chain(cells));
        }
        for column in leading..leading + COLUMNS.len() {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// A mean, with half its confidence interval where there are several runs.
fn cell(estimates: &Estimates, (_, metric, factor, decimals): Column) -> String {
    let Some(estimate) = estimates.get(metric) else {
        return "-".to_owned();
    };
    let mean = estimate.mean * factor;
    match estimate.half_width {
        None => format!("{mean:.decimals$}"),
        Some(half) => format!("{mean:.decimals$} ± {:.decimals$}", half * factor),
    }
}
