//! The result as a table and as JSON.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};
use switchyard_sim::soak::SoakReport;

/// Faults by kind, the sums, and a test of the failure.
pub(super) fn as_text(report: &SoakReport, seconds: f64) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["fault", "count"]);
    for (label, count) in &report.faults {
        table.add_row([(*label).to_owned(), count.to_string()]);
    }
    let sums = [
        ("faults", report.faults().to_string()),
        ("events", report.events.to_string()),
        ("requests", report.requests.to_string()),
        ("answers", report.answers.to_string()),
        ("imbalance", report.imbalance.to_string()),
        ("seeds", report.seeds.to_string()),
        ("seeds run twice", report.repeated.to_string()),
        ("seconds", format!("{seconds:.1}")),
    ];
    table.add_row(["", ""]);
    for (label, sum) in sums {
        table.add_row([label.to_owned(), sum]);
    }
    if let Some(counts) = table.column_mut(1) {
        counts.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if let Some(failure) = &report.failure {
        // Writing into a text cannot fail.
        let _ = write!(text, "\n\n{}", failure.test);
    }
    text
}

/// The report with its time.
pub(super) fn as_json(report: &SoakReport, seconds: f64) -> Value {
    json!({ "report": report, "seconds": seconds })
}
