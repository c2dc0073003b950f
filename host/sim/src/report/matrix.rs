//! Differences from a baseline as matrices: a row per policy, and a column per point of the sweep
//! or, without a sweep, per metric.

use super::comparison::{Change, Comparison};
use super::metric::{COLUMNS, Metric};

/// Differences of all policies from one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferenceMatrix {
    /// The metric of all cells; absent if each column has its own.
    pub metric: Option<&'static Metric>,
    /// The policy that the others are compared with.
    pub baseline: String,
    /// Seeds that are compared in pairs.
    pub seeds: usize,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// By policy.
    pub rows: Vec<DifferenceRow>,
}

/// The differences of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferenceRow {
    /// The policy.
    pub policy: String,
    /// By column.
    pub changes: Vec<Option<Change>>,
}

/// Explains the cells of all matrices.
pub const DIFFERENCES_NOTE: &str = "Mean differences, seed by seed, ± half of their 95 % confidence \
     intervals; n.s.: not significant, because the interval contains 0. One of twenty comparisons \
     without a difference still looks significant.";

/// One matrix per metric if a parameter was swept, otherwise one matrix of all metrics.
pub fn differences(comparisons: &[Comparison]) -> Vec<DifferenceMatrix> {
    let points = distinct(comparisons.iter().map(|compared| compared.point.as_str()));
    let metrics = || {
        COLUMNS
            .iter()
            .filter(|metric| is_compared(comparisons, metric))
    };
    match points.as_slice() {
        [] => Vec::new(),
        [point] => {
            let cells = metrics().map(|metric| (metric.heading, *point, metric));
            matrix(comparisons, None, cells.collect())
                .into_iter()
                .collect()
        }
        points => {
            let of_metric = |metric| {
                let cells = points.iter().map(|point| (*point, *point, metric));
                matrix(comparisons, Some(metric), cells.collect())
            };
            metrics().filter_map(of_metric).collect()
        }
    }
}

/// Whether a policy has a value other than 0.
fn is_compared(comparisons: &[Comparison], metric: &Metric) -> bool {
    let changes = comparisons.iter().flat_map(|compared| &compared.effects);
    let mut own = changes.filter(|change| change.metric == metric.key);
    own.any(|change| change.effect.baseline != 0.0 || change.effect.mean != 0.0)
}

/// From the heading, point and metric of each column.
fn matrix(
    comparisons: &[Comparison],
    metric: Option<&'static Metric>,
    columns: Vec<(&str, &str, &Metric)>,
) -> Option<DifferenceMatrix> {
    let baseline = comparisons.first()?.baseline.clone();
    let policies = distinct(comparisons.iter().map(|compared| compared.policy.as_str()));
    let row = |policy: &str| {
        let change = |(_, point, metric): &(&str, &str, &Metric)| {
            let mut own = comparisons.iter();
            let own = own.find(|one| one.policy == policy && one.point == *point)?;
            let mut changes = own.effects.iter();
            changes.find(|change| change.metric == metric.key).cloned()
        };
        DifferenceRow {
            policy: policy.to_owned(),
            changes: columns.iter().map(change).collect(),
        }
    };
    let rows: Vec<DifferenceRow> = policies.into_iter().map(row).collect();
    let changes = rows.iter().flat_map(|row| row.changes.iter().flatten());
    Some(DifferenceMatrix {
        metric,
        baseline,
        seeds: changes
            .map(|change| change.effect.difference.runs)
            .max()
            .unwrap_or(0),
        columns: columns
            .iter()
            .map(|(heading, ..)| (*heading).to_owned())
            .collect(),
        rows,
    })
}

/// In the order of their first occurrences.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

// === impl DifferenceMatrix ===

impl DifferenceMatrix {
    /// Its heading: `violations %: difference from fcfs over 10 seeds`.
    pub fn title(&self) -> String {
        let (baseline, seeds) = (&self.baseline, self.seeds);
        match self.metric {
            Some(metric) => format!(
                "{}: difference from {baseline}, {seeds} seeds",
                metric.heading
            ),
            None => format!("Difference from {baseline}, {seeds} seeds"),
        }
    }
}

// === impl DifferenceRow ===

impl DifferenceRow {
    /// As a terminal shows them: `+0.45 ± 0.10 worse`, or `-` without a value.
    pub fn cells(&self) -> impl Iterator<Item = String> {
        self.changes.iter().map(|change| {
            let parts = change.as_ref().and_then(Change::parts);
            parts.map_or("-".to_owned(), |[mean, half, verdict]| {
                format!("{mean} ± {half} {verdict}")
            })
        })
    }
}
