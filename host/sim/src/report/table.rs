//! The comparison of policies, without a form: terminals and pages give it theirs.

use serde::Serialize;

use super::metric::{Better, COLUMNS, Metric};
use super::text;
use crate::metrics::{Estimate, Estimates};
use crate::runner::Outcome;

/// One row per policy and point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// In the order of the outcomes.
    pub rows: Vec<Row>,
}

/// One policy at one point; means over the seeds with their 95 % confidence intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The point's name; empty where nothing was swept.
    pub point: String,
    /// The policy's name.
    pub policy: String,
    /// Requests that arrived in a run.
    pub requests: Option<Estimate>,
    /// Answers in time per second.
    pub goodput_per_s: Option<Estimate>,
    /// Expected accuracy of all answers.
    pub accuracy: Option<Estimate>,
    /// Mean utility of an arrival.
    pub utility: Option<Estimate>,
    /// Arrivals that were not answered in time.
    pub violation_ratio: Option<Estimate>,
    /// Median latency in milliseconds.
    pub latency_p50_ms: Option<Estimate>,
    /// 95th percentile in milliseconds.
    pub latency_p95_ms: Option<Estimate>,
    /// 99th percentile in milliseconds.
    pub latency_p99_ms: Option<Estimate>,
    /// Times that the policy was asked in a run.
    pub windows: Option<Estimate>,
    /// Mean number of requests in a batch.
    pub batch_size_mean: Option<Estimate>,
}

/// How a value compares with the others of its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing to say.
    None,
    /// The best mean.
    Best,
    /// Its confidence interval overlaps the one of the best mean.
    Tied,
}

/// The comparison of a sweep's outcomes.
pub fn table(outcomes: &[Outcome]) -> Table {
    Table {
        rows: outcomes.iter().map(Row::of).collect(),
    }
}

// === impl Table ===

impl Table {
    /// The headings of [`Row::cells`].
    pub fn headings() -> impl Iterator<Item = &'static str> {
        COLUMNS.iter().map(|metric| metric.heading)
    }

    /// How each cell of a row compares with those of the other policies at its point.
    pub fn marks(&self, row: usize) -> [Mark; COLUMNS.len()] {
        let own = &self.rows[row];
        let rivals: Vec<&Row> = self.rows.iter().filter(|r| r.point == own.point).collect();
        if rivals.len() < 2 {
            return [Mark::None; COLUMNS.len()];
        }
        let own = own.estimates();
        std::array::from_fn(|column| {
            let values = rivals.iter().filter_map(|row| row.estimates()[column]);
            mark(own[column], values, COLUMNS[column].better)
        })
    }
}

fn mark(own: Option<Estimate>, all: impl Iterator<Item = Estimate>, better: Better) -> Mark {
    let sign = match better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
        Better::Neither => return Mark::None,
    };
    let best = all.max_by(|a, b| (sign * a.mean).total_cmp(&(sign * b.mean)));
    let (Some(own), Some(best)) = (own, best) else {
        return Mark::None;
    };
    let reach = own.half_width.unwrap_or(0.0) + best.half_width.unwrap_or(0.0);
    match (best.mean - own.mean).abs() {
        0.0 => Mark::Best,
        apart if apart <= reach => Mark::Tied,
        _ => Mark::None,
    }
}

// === impl Row ===

impl Row {
    fn of(outcome: &Outcome) -> Self {
        let estimates: &Estimates = &outcome.estimates;
        let get = |key| estimates.get(key);
        Self {
            point: outcome.point.clone(),
            policy: outcome.policy.clone(),
            requests: get("arrivals"),
            goodput_per_s: get("goodput_per_s"),
            accuracy: get("accuracy_expected"),
            utility: get("utility"),
            violation_ratio: get("violation_ratio"),
            latency_p50_ms: get("latency_p50_ms"),
            latency_p95_ms: get("latency_p95_ms"),
            latency_p99_ms: get("latency_p99_ms"),
            windows: get("windows"),
            batch_size_mean: get("batch_size_mean"),
        }
    }

    /// In the order of [`COLUMNS`].
    pub fn estimates(&self) -> [Option<Estimate>; COLUMNS.len()] {
        [
            self.requests,
            self.goodput_per_s,
            self.accuracy,
            self.utility,
            self.violation_ratio,
            self.latency_p50_ms,
            self.latency_p95_ms,
            self.latency_p99_ms,
            self.windows,
            self.batch_size_mean,
        ]
    }

    /// As text, under [`Table::headings`]: `0.912 ± 0.004`, or `-` where there is no value.
    pub fn cells(&self) -> [String; COLUMNS.len()] {
        let estimates = self.estimates();
        std::array::from_fn(|at| cell(estimates[at], &COLUMNS[at]))
    }
}

fn cell(estimate: Option<Estimate>, metric: &Metric) -> String {
    match metric.shown(estimate) {
        None => "-".to_owned(),
        Some((mean, None)) => mean,
        Some((mean, Some(half))) => format!("{mean} ± {half}"),
    }
}

// === impl Metric ===

impl Metric {
    /// Mean and half interval as text.
    pub fn shown(&self, estimate: Option<Estimate>) -> Option<(String, Option<String>)> {
        let estimate = estimate?;
        let number = |value: f64| text::number(value * self.factor, self.decimals);
        Some((number(estimate.mean), estimate.half_width.map(number)))
    }
}
