//! Means per policy and point, without a layout: terminals and pages have their own.

use serde::Serialize;

use super::comparison::paired;
use super::metric::{Better, COLUMNS, Metric};
use crate::metrics::{Estimate, Estimates};
use crate::runner::PolicyOutcome;

/// One row per policy and point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonTable {
    /// In the order of the outcomes.
    pub rows: Vec<ComparisonRow>,
}

/// One policy at one point; means over the seeds with their 95 % confidence intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// The point's name; empty without a sweep.
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
    /// Arrivals that were rejected.
    pub rejection_ratio: Option<Estimate>,
    /// Median latency in milliseconds.
    pub latency_p50_ms: Option<Estimate>,
    /// 95th percentile in milliseconds.
    pub latency_p95_ms: Option<Estimate>,
    /// 99th percentile in milliseconds.
    pub latency_p99_ms: Option<Estimate>,
    /// Windows that the policy decided in a run.
    pub windows: Option<Estimate>,
    /// Mean number of requests in a batch.
    pub batch_size_mean: Option<Estimate>,
    /// How each value compares with the other policies at its point, in the order of [`COLUMNS`].
    #[serde(skip)]
    pub ranks: [Rank; COLUMNS.len()],
}

/// How a value compares with the best of its point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// Significantly worse than the best, or not comparable, or equal for all policies.
    #[default]
    None,
    /// The best mean.
    Best,
    /// Not significantly different from the best: the 95 % confidence interval of the paired
    /// differences contains 0.
    Tied,
}

/// The comparison of a sweep's outcomes.
pub fn comparison_table(outcomes: &[PolicyOutcome]) -> ComparisonTable {
    let rows = outcomes.iter().map(|own| ComparisonRow {
        ranks: ranks(own, outcomes),
        ..ComparisonRow::of(own)
    });
    ComparisonTable {
        rows: rows.collect(),
    }
}

fn ranks(own: &PolicyOutcome, all: &[PolicyOutcome]) -> [Rank; COLUMNS.len()] {
    let rivals = all.iter().filter(|other| other.point == own.point);
    let rivals: Vec<&PolicyOutcome> = rivals.collect();
    match rivals.len() {
        0 | 1 => [Rank::None; COLUMNS.len()],
        _ => COLUMNS.map(|metric| rank(own, &rivals, &metric)),
    }
}

fn rank(own: &PolicyOutcome, rivals: &[&PolicyOutcome], metric: &Metric) -> Rank {
    let sign = match metric.better {
        Better::Higher => 1.0,
        Better::Lower => -1.0,
        Better::Neither => return Rank::None,
    };
    let mean = |outcome: &PolicyOutcome| Some(outcome.estimates.get(metric.key)?.mean);
    let means = || {
        rivals
            .iter()
            .filter_map(|rival| Some((*rival, mean(rival)?)))
    };
    let best = means().max_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
    let (Some(own_mean), Some((best, best_mean))) = (mean(own), best) else {
        return Rank::None;
    };
    if means().all(|(_, mean)| mean == best_mean) {
        return Rank::None;
    }
    if own_mean == best_mean {
        return Rank::Best;
    }
    match paired(&best.reports, &own.reports, metric) {
        Some(effect) if effect.is_noise() => Rank::Tied,
        _ => Rank::None,
    }
}

// === impl ComparisonTable ===

impl ComparisonTable {
    /// The headings of [`ComparisonRow::cells`].
    pub fn headings() -> impl Iterator<Item = &'static str> {
        COLUMNS.iter().map(|metric| metric.heading)
    }

    /// Explains the marks of [`ComparisonRow::cells`]; absent if there are none.
    pub fn note(&self) -> Option<&'static str> {
        let mut ranks = self.rows.iter().flat_map(|row| row.ranks);
        ranks.any(|rank| rank != Rank::None).then_some(
            "* best, = not significantly different from the best (the 95 % interval of the \
             differences, seed by seed, contains 0)",
        )
    }
}

// === impl ComparisonRow ===

impl ComparisonRow {
    fn of(outcome: &PolicyOutcome) -> Self {
        let estimates: &Estimates = &outcome.estimates;
        let get = |metric: &str| estimates.get(metric);
        Self {
            point: outcome.point.clone(),
            policy: outcome.policy.clone(),
            requests: get("arrivals"),
            goodput_per_s: get("goodput_per_s"),
            accuracy: get("accuracy_expected"),
            utility: get("utility"),
            violation_ratio: get("violation_ratio"),
            rejection_ratio: get("rejection_ratio"),
            latency_p50_ms: get("latency_p50_ms"),
            latency_p95_ms: get("latency_p95_ms"),
            latency_p99_ms: get("latency_p99_ms"),
            windows: get("windows"),
            batch_size_mean: get("batch_size_mean"),
            ranks: [Rank::None; COLUMNS.len()],
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
            self.rejection_ratio,
            self.latency_p50_ms,
            self.latency_p95_ms,
            self.latency_p99_ms,
            self.windows,
            self.batch_size_mean,
        ]
    }

    /// As text, under [`ComparisonTable::headings`]: `0.912 ± 0.004`, with `*` or `=` for its rank,
    /// or `-` without a value.
    pub fn cells(&self) -> [String; COLUMNS.len()] {
        let estimates = self.estimates();
        std::array::from_fn(|at| {
            let Some((mean, half)) = COLUMNS[at].shown(estimates[at]) else {
                return "-".to_owned();
            };
            let half = half.map_or(String::new(), |half| format!(" ± {half}"));
            format!("{mean}{half}{}", self.ranks[at].sign())
        })
    }
}

// === impl Rank ===

impl Rank {
    fn sign(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Best => " *",
            Self::Tied => " =",
        }
    }
}
