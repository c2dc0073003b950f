//! Results of a simulation, for people and for programs.

use std::fs;
use std::path::Path;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use switchyard_sim::report::{self, Comparison, ReportData};

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
    for comparison in &data.comparisons {
        println!("\n{}", compared(comparison, data.meta.seeds.len()));
    }
    Ok(())
}

/// One policy against the baseline; a metric per line.
fn compared(comparison: &Comparison, seeds: usize) -> String {
    let Comparison {
        point,
        policy,
        baseline,
        effects,
    } = comparison;
    let at = match point.is_empty() {
        true => String::new(),
        false => format!(" at {point}"),
    };
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header([
        "metric",
        baseline,
        policy,
        "difference",
        "95 % interval",
        "effect",
        "verdict",
    ]);
    for change in effects {
        let Some(metric) = change.shown() else {
            continue;
        };
        let effect = &change.effect;
        let shown = |value: f64| format!("{:.*}", metric.decimals, value * metric.factor);
        let signed = |value: f64| format!("{:+.*}", metric.decimals, value * metric.factor);
        let half_width = effect.difference.half_width.unwrap_or_default();
        let mean = effect.difference.mean;
        table.add_row([
            metric.heading.to_owned(),
            shown(effect.baseline),
            shown(effect.mean),
            signed(mean),
            format!(
                "{} to {}",
                signed(mean - half_width),
                signed(mean + half_width)
            ),
            effect
                .size
                .map_or("-".to_owned(), |size| format!("{size:+.1}")),
            change.verdict.label().to_owned(),
        ]);
    }
    for column in 1..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{policy} against {baseline}{at}, {seeds} seeds in pairs\n{table}")
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
