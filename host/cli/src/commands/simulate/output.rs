//! Results of a simulation: tables, JSON, the report and the figure.

use std::fs;
use std::path::Path;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use switchyard_sim::report::{
    self, ComparisonTable, DIFFERENCES_NOTE, DifferenceMatrix, ReportData,
};

use switchyard_simulate::figure;

use super::arguments::SimulateArgs;
use crate::commands::draft::write_file;
use crate::commands::failure::Failure;
use crate::commands::print;

/// Writes the files that options name, and the tables to stdout.
pub(super) fn write(data: &ReportData, args: &SimulateArgs) -> Result<(), Failure> {
    if let Some(folder) = &args.report {
        fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
        let page = folder.join("index.html");
        write_file(&page, report::html(data)).map_err(|error| unwritten(&page, error))?;
        print::note(format_args!("report: {}", page.display()));
    }
    if let Some(file) = &args.plot {
        write_file(file, figure::figure(data)).map_err(|error| unwritten(file, error))?;
        print::note(format_args!("plot: {}", file.display()));
    }
    if let Some(file) = &args.json {
        if file == Path::new("-") {
            return print::json(data);
        }
        let text = serde_json::to_string_pretty(data).map_err(Failure::check)?;
        write_file(file, text).map_err(|error| unwritten(file, error))?;
    }
    let means = report::comparison_table(&data.runs);
    print::line(table(data, &means))?;
    if let Some(note) = means.note() {
        print::line(note)?;
    }
    let matrices = report::differences(&data.comparisons);
    for matrix in &matrices {
        print::line(format_args!(
            "\n{}\n{}",
            matrix.title(),
            differences(matrix)
        ))?;
    }
    if !matrices.is_empty() {
        print::line(format_args!("\n{DIFFERENCES_NOTE}"))?;
    }
    Ok(())
}

fn table(data: &ReportData, means: &ComparisonTable) -> Table {
    let swept = data.runs.iter().any(|run| !run.point.is_empty());
    let names = swept.then_some("point").into_iter().chain(["policy"]);
    let names: Vec<&str> = names.collect();
    let headings = names.iter().copied().chain(ComparisonTable::headings());
    let rows = means.rows.iter().map(|row| {
        let point = swept.then(|| row.point.clone());
        let leading = point.into_iter().chain([row.policy.clone()]);
        leading.chain(row.cells()).collect()
    });
    aligned(
        names.len(),
        headings.map(str::to_owned).collect(),
        rows.collect(),
    )
}

/// The differences from the baseline: a row per policy.
fn differences(matrix: &DifferenceMatrix) -> Table {
    let headings = ["policy".to_owned()]
        .into_iter()
        .chain(matrix.columns.clone());
    let rows = matrix.rows.iter();
    let rows = rows.map(|row| {
        [row.policy.clone()]
            .into_iter()
            .chain(row.cells())
            .collect()
    });
    aligned(1, headings.collect(), rows.collect())
}

/// A table whose first `names` columns are text, the others right-aligned numbers.
fn aligned(names: usize, headings: Vec<String>, rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    let columns = headings.len();
    table.set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    for column in names..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn unwritten(path: &Path, error: std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}
