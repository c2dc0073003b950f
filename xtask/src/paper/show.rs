//! A figure as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::claim::Bound;
use super::figure::{Best, Figure};
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
    let best = figure.best.iter().map(|_| "below the best");
    table.set_header(names.chain(metrics).chain(best));
    for (point, policy, estimates) in results.rows() {
        let names = is_swept.then_some(point).into_iter().chain([policy]);
        let names = names.map(str::to_owned);
        let cells = figure.metrics.iter().map(|metric| cell(estimates, metric));
        let best = figure.best.iter();
        let below = best.map(|best| below(best, results, point, policy));
        table.add_row(names.chain(cells).chain(below));
    }
    let first = 1 + usize::from(is_swept);
    let columns = first..first + figure.metrics.len() + usize::from(figure.best.is_some());
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The distance from the best possible, seed by seed.
fn below(best: &Best, results: &Results, point: &str, policy: &str) -> String {
    let of = |policy: &str| results.sample(point, policy, &best.metric);
    match (of(&best.policy), of(policy)) {
        (Ok(best), Ok(own)) => {
            let below = best.minus(&own);
            interval(below.mean, below.half_width())
        }
        _ => "-".to_owned(),
    }
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

    #[test]
    fn the_distance_from_the_best_is_paired_by_seed() {
        let run = |policy: &str, values: [f64; 2]| {
            let [one, other] = values;
            let mean = f64::midpoint(one, other);
            format!(
                r#"{{"point": "", "policy": "{policy}",
                    "estimates": {{"goodput_ratio": {{"mean": {mean}}}}},
                    "by_seed": {{"goodput_ratio": [{one}, {other}]}}}}"#
            )
        };
        let runs = [run("oracle", [0.75, 0.5]), run("edf", [0.5, 0.25])].join(",");
        let results = Results::parse(&format!(r#"{{"runs": [{runs}]}}"#)).unwrap();
        let best = Best {
            policy: "oracle".to_owned(),
            metric: "goodput_ratio".to_owned(),
        };
        let at = |policy: &str| below(&best, &results, "", policy);
        assert_eq!(at("edf"), "0.250 \u{b1} 0.000");
        assert_eq!(at("oracle"), "0.000 \u{b1} 0.000");
        assert_eq!(at("fcfs"), "-");
    }
}
