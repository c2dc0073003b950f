//! The metrics that reports show, with their names, units and formats.

use crate::metrics::Estimate;
use crate::text;

/// One metric as people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name in [`Estimates`](crate::metrics::Estimates).
    pub key: &'static str,
    /// Heading of a column.
    pub heading: &'static str,
    /// Heading of a plot.
    pub title: &'static str,
    /// Its definition, in a few words.
    pub note: &'static str,
    /// Title of an axis with its values.
    pub axis: &'static str,
    /// Values are multiplied by this before they are shown.
    pub factor: f64,
    /// Digits after the point in tables.
    pub decimals: usize,
    /// Written behind a number.
    pub unit: &'static str,
    /// Which values are good.
    pub better: Better,
}

/// Which values of a metric are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// High ones.
    Higher,
    /// Low ones.
    Lower,
    /// None: it does not measure quality.
    Neither,
}

/// Requests that arrived.
pub const REQUESTS: Metric = Metric {
    key: "arrivals",
    heading: "requests",
    title: "Requests",
    note: "arrived in a run",
    axis: "requests",
    factor: 1.0,
    decimals: 0,
    unit: "",
    better: Better::Neither,
};

/// Answers in time per second.
pub const GOODPUT: Metric = Metric {
    key: "goodput_per_s",
    heading: "goodput/s",
    title: "Goodput",
    note: "answers in time per second",
    axis: "answers per second",
    factor: 1.0,
    decimals: 1,
    unit: "/s",
    better: Better::Higher,
};

/// Expected accuracy of all answers.
pub const ACCURACY: Metric = Metric {
    key: "accuracy_expected",
    heading: "accuracy %",
    title: "Accuracy",
    note: "expected, over all answers",
    axis: "%",
    factor: 100.0,
    decimals: 2,
    unit: " %",
    better: Better::Higher,
};

/// Utility of an arrival.
pub const UTILITY: Metric = Metric {
    key: "utility",
    heading: "utility",
    title: "Utility",
    note: "accuracy, reduced by the penalty of a late answer",
    axis: "mean per arrival",
    factor: 1.0,
    decimals: 3,
    unit: "",
    better: Better::Higher,
};

/// Arrivals that were not answered in time.
pub const VIOLATIONS: Metric = Metric {
    key: "violation_ratio",
    heading: "violations %",
    title: "Violations",
    note: "arrivals not answered in time",
    axis: "%",
    factor: 100.0,
    decimals: 2,
    unit: " %",
    better: Better::Lower,
};

/// Arrivals that were rejected.
pub const REJECTIONS: Metric = Metric {
    key: "rejection_ratio",
    heading: "rejected %",
    title: "Rejections",
    note: "arrivals rejected by the policy, or because a queue was full",
    axis: "%",
    factor: 100.0,
    decimals: 2,
    unit: " %",
    better: Better::Lower,
};

/// Median latency.
pub const P50: Metric = latency("latency_p50_ms", "p50 ms", "Median latency");
/// 95th percentile of latency.
pub const P95: Metric = latency("latency_p95_ms", "p95 ms", "95th percentile of latency");
/// 99th percentile of latency.
pub const P99: Metric = latency("latency_p99_ms", "p99 ms", "99th percentile of latency");

/// Windows that the policy decided.
pub const WINDOWS: Metric = Metric {
    key: "windows",
    heading: "windows",
    title: "Windows",
    note: "windows that the policy decided in a run",
    axis: "windows",
    factor: 1.0,
    decimals: 0,
    unit: "",
    better: Better::Neither,
};

/// Mean size of a batch.
pub const BATCH: Metric = Metric {
    key: "batch_size_mean",
    heading: "mean batch",
    title: "Mean batch",
    note: "requests in a batch",
    axis: "requests",
    factor: 1.0,
    decimals: 2,
    unit: "",
    better: Better::Neither,
};

/// Share of the workers' time in which they ran batches.
pub const UTILISATION: Metric = Metric {
    key: "utilisation",
    heading: "utilisation %",
    title: "Utilisation",
    note: "share of the workers' time in batches",
    axis: "%",
    factor: 100.0,
    decimals: 1,
    unit: " %",
    better: Better::Neither,
};

/// Energy of an answer.
pub const ENERGY: Metric = Metric {
    key: "energy_per_answer_j",
    heading: "J per answer",
    title: "Energy",
    note: "joules per answer",
    axis: "J",
    factor: 1.0,
    decimals: 3,
    unit: " J",
    better: Better::Lower,
};

/// The columns of the comparison, in their order.
pub const COLUMNS: [Metric; 11] = [
    REQUESTS, GOODPUT, ACCURACY, UTILITY, VIOLATIONS, REJECTIONS, P50, P95, P99, WINDOWS, BATCH,
];

/// The metrics that are plotted against the swept parameter.
pub(super) const PLOTTED: [Metric; 10] = [
    UTILITY,
    GOODPUT,
    VIOLATIONS,
    REJECTIONS,
    ACCURACY,
    P50,
    P99,
    BATCH,
    UTILISATION,
    ENERGY,
];

// === impl Metric ===

impl Metric {
    /// Mean and half interval, as a table shows them.
    pub fn shown(&self, estimate: Option<Estimate>) -> Option<(String, Option<String>)> {
        let estimate = estimate?;
        let number = |value: f64| text::number(value * self.factor, self.decimals);
        Some((number(estimate.mean), estimate.half_width.map(number)))
    }

    /// A difference with its sign, as a table shows it.
    pub fn signed(&self, difference: f64) -> String {
        let number = text::number(difference * self.factor, self.decimals);
        match number.starts_with('−') || difference <= 0.0 {
            true => number,
            false => format!("+{number}"),
        }
    }

    /// A mean with its interval and unit, for tooltips; `estimate` is in the shown unit.
    pub(super) fn in_words(&self, estimate: &Estimate) -> String {
        let (mean, unit) = (text::brief(estimate.mean), self.unit);
        match estimate.half_width {
            Some(half) => format!("{mean} ± {}{unit}", text::brief(half)),
            None => format!("{mean}{unit}"),
        }
    }

    /// Its definition, and which values are good.
    pub(super) fn caption(&self) -> String {
        let direction = match self.better {
            Better::Higher => "; higher is better",
            Better::Lower => "; lower is better",
            Better::Neither => "",
        };
        format!("{}{direction}", self.note)
    }

    /// Whether an axis of its values begins at 0.
    pub(super) fn is_from_zero(&self) -> bool {
        self.better == Better::Lower || self.key == GOODPUT.key
    }
}

const fn latency(key: &'static str, heading: &'static str, title: &'static str) -> Metric {
    Metric {
        key,
        heading,
        title,
        note: "from arrival to answer",
        axis: "ms",
        factor: 1.0,
        decimals: 1,
        unit: " ms",
        better: Better::Lower,
    }
}
