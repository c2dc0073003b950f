//! The metrics that reports show, and how.

/// One metric as people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name in [`Estimates`](crate::metrics::Estimates).
    pub key: &'static str,
    /// Heading of a column.
    pub heading: &'static str,
    /// Heading of a plot.
    pub title: &'static str,
    /// What exactly it is, in a few words.
    pub note: &'static str,
    /// Shown is the value times this.
    pub factor: f64,
    /// Digits after the point in tables.
    pub decimals: usize,
    /// Follows numbers.
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
    /// It says nothing of quality.
    Neither,
}

/// Requests that arrived.
pub const REQUESTS: Metric = Metric {
    key: "arrivals",
    heading: "requests",
    title: "Requests",
    note: "arrived in a run",
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
    note: "accuracy less what lateness costs",
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

/// Times that the policy was asked.
pub const WINDOWS: Metric = Metric {
    key: "windows",
    heading: "windows",
    title: "Windows",
    note: "times that the policy was asked in a run",
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
    factor: 1.0,
    decimals: 2,
    unit: "",
    better: Better::Neither,
};

/// Time that workers ran batches.
pub const UTILISATION: Metric = Metric {
    key: "utilisation",
    heading: "utilisation %",
    title: "Utilisation",
    note: "workers' time in batches",
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
    factor: 1.0,
    decimals: 3,
    unit: " J",
    better: Better::Lower,
};

/// The columns of the comparison, in their order.
pub const COLUMNS: [Metric; 10] = [
    REQUESTS, GOODPUT, ACCURACY, UTILITY, VIOLATIONS, P50, P95, P99, WINDOWS, BATCH,
];

/// The metrics that are plotted against the swept parameter.
pub(super) const PLOTTED: [Metric; 9] = [
    UTILITY,
    GOODPUT,
    VIOLATIONS,
    ACCURACY,
    P50,
    P99,
    BATCH,
    UTILISATION,
    ENERGY,
];

const fn latency(key: &'static str, heading: &'static str, title: &'static str) -> Metric {
    Metric {
        key,
        heading,
        title,
        note: "from arrival to answer",
        factor: 1.0,
        decimals: 1,
        unit: " ms",
        better: Better::Lower,
    }
}
