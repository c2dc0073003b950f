//! A figure as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::figure::{Bound, Figure};
use super::results::{Estimate, Results};
use super::verdict::Verdict;

/// Width of text and tables.
const WIDTH: u16 = 110;

/// Title, claims, and optionally set-up and table.
pub(crate) fn figure(
    figure: &Figure,
    results: &Results,
    verdicts: &[Verdict<'_>],
    with_table: bool,
) -> String {
    let mut page = format!("# {}: {}\n\n", figure.name, figure.title);
    if with_table {
        // Writing to a string cannot fail.
        let _ = write!(page, "{}\n\n{}\n\n", figure.setup, values(figure, results));
    }
    let _ = write!(page, "{}\n\n", claims(verdicts));
    for verdict in verdicts.iter().filter(|verdict| !verdict.holds) {
        let reason = verdict.claim.departs.as_deref().unwrap_or("not explained");
        let _ = write!(page, "{}: {reason}\n\n", verdict.claim.says);
    }
    page
}

/// One row per point and policy.
fn values(figure: &Figure, results: &Results) -> Table {
    let mut table = plain();
    let is_swept = results.points().any(|point| !point.is_empty());
    let names = is_swept.then_some("point").into_iter().chain(["policy"]);
    let metrics = figure.metrics.iter().map(String::as_str);
    table.set_header(names.chain(metrics));
    for (point, policy, estimates) in results.rows() {
        let names = is_swept.then_some(point).into_iter().chain([policy]);
        let names = names.map(str::to_owned);
        let cells = figure.metrics.iter().map(|metric| cell(estimates, metric));
        table.add_row(names.chain(cells));
    }
    let columns = 1 + usize::from(is_swept)..1 + usize::from(is_swept) + figure.metrics.len();
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn cell(estimates: &BTreeMap<String, Estimate>, metric: &str) -> String {
    match estimates.get(metric) {
        None => "-".to_owned(),
        Some(estimate) => interval(estimate.mean, estimate.half_width),
    }
}

pub(super) fn interval(mean: f64, half_width: Option<f64>) -> String {
    match half_width {
        None => number(mean),
        Some(half) => format!("{} \u{b1} {}", number(mean), number(half)),
    }
}

fn claims(verdicts: &[Verdict<'_>]) -> Table {
    let mut table = plain();
    table.set_header(["claim", "published", "bound", "measured", "holds"]);
    for verdict in verdicts {
        let claim = verdict.claim;
        table.add_row([
            claim.says.clone(),
            claim.published.clone().unwrap_or_else(|| "-".to_owned()),
            bound(claim.bound),
            interval(verdict.measured.mean, verdict.measured.half_width()),
            match (verdict.holds, &claim.fitted) {
                (true, Some(_)) => "fitted",
                (true, None) => "yes",
                (false, _) => "no",
            }
            .to_owned(),
        ]);
    }
    table
}

pub(super) fn bound(bound: Bound) -> String {
    match bound {
        Bound::AtLeast(low) => format!(">= {low}"),
        Bound::AtMost(high) => format!("<= {high}"),
        Bound::Within(low, high) => format!("{low} to {high}"),
    }
}

/// Three digits after the point, more for values close to 0.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.01 {
        format!("{value:.5}")
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_significant_digits() {
        assert_eq!(number(0.0), "0.000");
        assert_eq!(number(0.00123), "0.00123");
        assert_eq!(number(1.5), "1.500");
        assert_eq!(number(1234.5), "1234");
    }
}
