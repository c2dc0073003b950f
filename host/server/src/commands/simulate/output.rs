//! Results of a simulation, for people and for programs.

use std::fs;
use std::path::Path;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use switchyard_sim::report::{self, ReportData};

use crate::commands::Failure;

/// The table to stdout, JSON and the page where they were asked for.
pub(super) fn print(
    data: &ReportData,
    json: Option<&Path>,
    folder: Option<&Path>,
) -> Result<(), Failure> {
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
        let page = folder.join("index.html");
        fs::write(&page, report::html(data)).map_err(|error| unwritten(&page, error))?;
        eprintln!("report: {}", page.display());
    }
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(data).map_err(Failure::check)?;
        if file == Path::new("-") {
            println!("{text}");
            return Ok(());
        }
        fs::write(file, text).map_err(|error| unwritten(file, error))?;
    }
    println!("{}", table(data));
    Ok(())
}

fn table(data: &ReportData) -> Table {
    let swept = data.meta.axis.is_some();
    let mut table = Table::new();
    table.load_preset(NOTHING);
    let names = swept.then_some("point").into_iter().chain(["policy"]);
    let names: Vec<&str> = names.collect();
    table.set_header(names.iter().copied().chain(report::Table::headings()));
    for row in report::table(&data.runs).rows {
        let cells = row.cells();
        let leading = swept.then_some(row.point).into_iter().chain([row.policy]);
        table.add_row(leading.chain(cells));
    }
    for column in names.len()..names.len() + report::Table::headings().count() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn unwritten(path: &Path, error: std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}
