//! Means and differences, as text and as data.

use switchyard_sim::report::table::Rank;
use switchyard_sim::report::{ComparisonTable, ReportData, comparison_table, differences};

use crate::sweep::{outcomes, report};

#[test]
fn the_comparison_as_text() {
    let table = comparison_table(&outcomes());
    let mut text = ComparisonTable::headings().collect::<Vec<_>>().join(" | ");
    for row in &table.rows {
        let cells = row.cells().join(" | ");
        text += &format!("\n{} {}: {cells}", row.point, row.policy);
    }
    insta::assert_snapshot!(text);
}

/// The rank rests on the differences seed by seed, not on the intervals of the two means.
#[test]
fn the_best_of_a_point_is_marked() {
    let mut outcomes = outcomes();
    let p99 = |ms: [f64; 2], of: &mut switchyard_sim::PolicyOutcome| {
        for (report, ms) in of.reports.iter_mut().zip(ms) {
            report.total.latency.p99_ms = ms;
        }
        let reports = std::mem::take(&mut of.reports);
        *of = switchyard_sim::PolicyOutcome::new(&of.point, &of.policy, reports);
    };
    // Seeds differ by far more than policies, which differ by the same in each seed.
    p99([10.0, 90.0], &mut outcomes[2]);
    p99([11.0, 91.0], &mut outcomes[3]);
    let table = comparison_table(&outcomes);
    let of = |row: usize, heading| {
        let at = ComparisonTable::headings().position(|name| name == heading);
        table.rows[row].ranks[at.unwrap()]
    };
    assert_eq!((of(2, "p99 ms"), of(3, "p99 ms")), (Rank::Best, Rank::None));
    p99([89.0, 12.0], &mut outcomes[3]);
    let table = comparison_table(&outcomes);
    let at = ComparisonTable::headings().position(|name| name == "p99 ms");
    assert_eq!(table.rows[3].ranks[at.unwrap()], Rank::Tied);
    let windows = ComparisonTable::headings().position(|name| name == "windows");
    assert_eq!(
        table.rows[0].ranks[windows.unwrap()],
        Rank::None,
        "the number of windows does not measure quality"
    );
}

#[test]
fn a_single_policy_has_no_rank() {
    let table = comparison_table(&outcomes()[..1]);
    assert!(table.rows[0].ranks.iter().all(|rank| *rank == Rank::None));
    assert_eq!(table.note(), None);
}

#[test]
fn differences_of_a_sweep_are_a_matrix_per_metric() {
    let text: Vec<String> = differences(&report().comparisons)
        .iter()
        .map(|matrix| {
            let rows = matrix.rows.iter().map(|row| {
                let cells: Vec<String> = row.cells().collect();
                format!("{}: {}", row.policy, cells.join(" | "))
            });
            let rows: Vec<String> = rows.collect();
            let columns = matrix.columns.join(" | ");
            format!("{}\n{columns}\n{}", matrix.title(), rows.join("\n"))
        })
        .collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn differences_without_a_sweep_are_one_matrix() {
    let mut data = report();
    data.runs.truncate(2);
    let matrices = differences(&data.compared_with("edf").comparisons);
    assert_eq!(matrices.len(), 1);
    assert_eq!(matrices[0].metric, None);
    assert_eq!(matrices[0].columns[0], "goodput/s");
    assert_eq!(matrices[0].title(), "Difference from edf, 2 seeds");
    assert_eq!(differences(&[]), []);
}

/// Programs rely on these names.
#[test]
fn names_in_json_are_stable() {
    let data = report();
    let json = serde_json::to_value(&data).unwrap();
    insta::assert_snapshot!(skeleton(&json, 0).trim_end());
    let row = serde_json::to_value(&comparison_table(&data.runs).rows[0]).unwrap();
    insta::assert_snapshot!(skeleton(&row, 0).trim_end());
    let back: ReportData = serde_json::from_value(json).unwrap();
    assert_eq!(back.timelines, data.timelines);
}

/// Names of fields by depth; of lists, those of the first element. Metrics have their own names
/// and tests.
fn skeleton(value: &serde_json::Value, depth: usize) -> String {
    match value {
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let inner = match name.as_str() {
                    "estimates" | "reports" => String::new(),
                    _ => skeleton(value, depth + 1),
                };
                format!("{}{name}\n{inner}", "  ".repeat(depth))
            })
            .collect(),
        serde_json::Value::Array(list) => list
            .first()
            .map_or(String::new(), |first| skeleton(first, depth)),
        _ => String::new(),
    }
}
