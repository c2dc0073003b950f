//! The comparison, as text and as data.

use switchyard_sim::report::table::Mark;
use switchyard_sim::report::{Table, table};

use crate::sweep::{outcomes, report};

#[test]
fn the_comparison_as_text() {
    let table = table(&outcomes());
    let mut text = Table::headings().collect::<Vec<_>>().join(" | ");
    for row in &table.rows {
        text += &format!(
            "\n{} {}: {}",
            row.point,
            row.policy,
            row.cells().join(" | ")
        );
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_best_of_a_point_is_marked() {
    let mut outcomes = outcomes();
    // Utility of edf is higher by far, and its p99 made equal.
    let p99 = outcomes[2].estimates.get("latency_p99_ms").unwrap();
    let key = "latency_p99_ms".to_owned();
    outcomes[3].estimates.0.insert(key, p99);
    let table = table(&outcomes);
    let of = |row: usize, heading| {
        let at = Table::headings().position(|name| name == heading).unwrap();
        table.marks(row)[at]
    };
    assert_eq!((of(2, "p99 ms"), of(3, "p99 ms")), (Mark::Best, Mark::Best));
    assert_eq!(
        (of(0, "utility"), of(1, "utility")),
        (Mark::Best, Mark::None)
    );
    assert_eq!(
        of(0, "windows"),
        Mark::None,
        "many windows are neither good nor bad"
    );
    assert_eq!(
        table.rows[2].utility.unwrap().mean > table.rows[3].utility.unwrap().mean,
        of(2, "utility") == Mark::Best
    );
}

#[test]
fn one_policy_alone_is_not_the_best() {
    let table = table(&outcomes()[..1]);
    assert!(table.marks(0).iter().all(|mark| *mark == Mark::None));
}

/// Programs rely on these names.
#[test]
fn names_in_json_are_stable() {
    let data = report();
    let json = serde_json::to_value(&data).unwrap();
    insta::assert_snapshot!(skeleton(&json, 0).trim_end());
    let row = serde_json::to_value(&table(&data.runs).rows[0]).unwrap();
    insta::assert_snapshot!(skeleton(&row, 0).trim_end());
    let back: switchyard_sim::report::ReportData = serde_json::from_value(json).unwrap();
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
