//! The metrics of the five papers, for one set of requests.

use serde::{Deserialize, Serialize};

use super::latency::Latencies;
use super::sums::RequestSums;

/// Metrics of one set of requests. Ratios are of arrivals; accuracies are 0 to 1; a mean over
/// answers is absent if there are none.
///
/// An answer's accuracy comes in three kinds: *profiled* (the exit's on its test set: RAMSIS,
/// EdgeServing, PPO router), *expected* (its recall for the class the request has: SneakPeek
/// eq. 7 with theta known) and *sampled* (whether it was right, drawn from that recall).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Requests that arrived.
    pub arrivals: u64,
    /// Answered by the deadline.
    pub in_time: u64,
    /// Answered after it.
    pub late: u64,
    /// Answered from evidence, in time or late.
    pub short_circuited: u64,
    /// Rejected by the policy, or because no worker can run them.
    pub rejected: u64,
    /// Rejected because a queue or a lane was full.
    pub queue_full: u64,
    /// Dropped after their deadline by an app that drops.
    pub dropped: u64,
    /// Failed by the executor.
    pub failed: u64,
    /// Cancelled by the client.
    pub cancelled: u64,

    /// Mean utility of an arrival (SneakPeek eq. 2): expected accuracy, reduced by the penalty of a
    /// late answer; 0 for a request without an answer.
    pub utility: f64,
    /// The same with sampled accuracy.
    pub utility_sampled: f64,
    /// Profiled accuracy of the answers in time over arrivals (PPO router section 5: "goodput
    /// ratio").
    pub goodput_ratio: f64,
    /// Right answers in time over arrivals: the same, sampled.
    pub goodput_ratio_sampled: f64,
    /// Answers in time per second.
    pub goodput_per_s: f64,
    /// Answers in time over arrivals.
    pub in_time_ratio: f64,
    /// Arrivals that were not answered in time, for any reason.
    pub violation_ratio: f64,
    /// Late answers over arrivals ("delay ratio").
    pub late_ratio: f64,
    /// Rejected, by the policy or because of a full queue, over arrivals.
    pub rejection_ratio: f64,
    /// Dropped over arrivals.
    pub drop_ratio: f64,

    /// Mean profiled accuracy of all answers.
    pub accuracy_profiled: Option<f64>,
    /// Mean expected accuracy of all answers.
    pub accuracy_expected: Option<f64>,
    /// Share of right answers.
    pub accuracy_sampled: Option<f64>,
    /// Mean profiled accuracy of the answers in time (RAMSIS: "accuracy per satisfied query").
    pub accuracy_per_satisfied: Option<f64>,
    /// Mean expected accuracy of the answers in time.
    pub accuracy_expected_per_satisfied: Option<f64>,
    /// Share of right answers among those in time.
    pub accuracy_sampled_per_satisfied: Option<f64>,
    /// Share of the answers that came from the most accurate variants of their apps.
    pub heavy_share: Option<f64>,

    /// Sum of the times by which answers were late, in seconds ("violation time").
    pub violation_s: f64,
    /// Mean time by which a late answer was late, in milliseconds.
    pub lateness_ms: Option<f64>,
    /// Mean of turnaround over the latency of the fastest variant alone on its fastest worker
    /// (MAEL section 5: average normalised turnaround time).
    pub antt: Option<f64>,
    /// Lower bound of the ANTT of any schedule; in runs of oracles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antt_least: Option<f64>,
    /// Mean time from arrival to the start of the batch that answered, in milliseconds.
    pub queued_ms: Option<f64>,
    /// 99th percentile of latency over deadline (MAEL: "p99 over SLO").
    pub p99_over_deadline: Option<f64>,
    /// From arrival to answer.
    pub latency: Latencies,
}

// === impl Summary ===

impl Summary {
    pub(super) fn new(sums: &RequestSums, simulated_s: f64) -> Self {
        let arrivals = sums.arrivals.max(1) as f64;
        let answered = sums.in_time + sums.late;
        let per = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let refused = sums.rejected + sums.queue_full;
        Self {
            arrivals: sums.arrivals,
            in_time: sums.in_time,
            late: sums.late,
            short_circuited: sums.short_circuited,
            rejected: sums.rejected,
            queue_full: sums.queue_full,
            dropped: sums.dropped,
            failed: sums.failed,
            cancelled: sums.cancelled,
            utility: sums.utility / arrivals,
            utility_sampled: sums.utility_sampled / arrivals,
            goodput_ratio: sums.profiled_in_time / arrivals,
            goodput_ratio_sampled: sums.correct_in_time as f64 / arrivals,
            goodput_per_s: match simulated_s > 0.0 {
                true => sums.in_time as f64 / simulated_s,
                false => 0.0,
            },
            in_time_ratio: sums.in_time as f64 / arrivals,
            violation_ratio: (sums.arrivals - sums.in_time) as f64 / arrivals,
            late_ratio: sums.late as f64 / arrivals,
            rejection_ratio: refused as f64 / arrivals,
            drop_ratio: sums.dropped as f64 / arrivals,
            accuracy_profiled: per(sums.profiled, answered),
            accuracy_expected: per(sums.expected, answered),
            accuracy_sampled: per(sums.correct as f64, answered),
            accuracy_per_satisfied: per(sums.profiled_in_time, sums.in_time),
            accuracy_expected_per_satisfied: per(sums.expected_in_time, sums.in_time),
            accuracy_sampled_per_satisfied: per(sums.correct_in_time as f64, sums.in_time),
            heavy_share: per(sums.heavy as f64, answered),
            violation_s: sums.lateness_us as f64 / 1e6,
            lateness_ms: per(sums.lateness_us as f64 / 1e3, sums.late),
            antt: per(sums.slowdown, answered),
            antt_least: None,
            queued_ms: per(sums.waited_us as f64 / 1e3, answered),
            p99_over_deadline: (answered > 0)
                .then(|| sums.over_deadline.quantile(0.99) as f64 / 1e3),
            latency: sums.latencies.latencies(sums.latency_us),
        }
    }

    /// Requests answered, in time or late.
    pub fn answered(&self) -> u64 {
        self.in_time + self.late
    }

    /// Requests that ended in any way.
    pub fn ended(&self) -> u64 {
        let refused = self.rejected + self.queue_full + self.dropped;
        self.answered() + refused + self.failed + self.cancelled
    }

    /// Every metric that can be averaged over seeds, by name.
    pub fn scalars(&self) -> Vec<(&'static str, Option<f64>)> {
        let latency = |ms: f64| (self.latency.count > 0).then_some(ms);
        vec![
            ("arrivals", Some(self.arrivals as f64)),
            ("utility", Some(self.utility)),
            ("utility_sampled", Some(self.utility_sampled)),
            ("goodput_ratio", Some(self.goodput_ratio)),
            ("goodput_ratio_sampled", Some(self.goodput_ratio_sampled)),
            ("goodput_per_s", Some(self.goodput_per_s)),
            ("in_time_ratio", Some(self.in_time_ratio)),
            ("violation_ratio", Some(self.violation_ratio)),
            ("late_ratio", Some(self.late_ratio)),
            ("rejection_ratio", Some(self.rejection_ratio)),
            ("drop_ratio", Some(self.drop_ratio)),
            ("accuracy_profiled", self.accuracy_profiled),
            ("accuracy_expected", self.accuracy_expected),
            ("accuracy_sampled", self.accuracy_sampled),
            ("accuracy_per_satisfied", self.accuracy_per_satisfied),
            (
                "accuracy_expected_per_satisfied",
                self.accuracy_expected_per_satisfied,
            ),
            (
                "accuracy_sampled_per_satisfied",
                self.accuracy_sampled_per_satisfied,
            ),
            ("heavy_share", self.heavy_share),
            ("violation_s", Some(self.violation_s)),
            ("lateness_ms", self.lateness_ms),
            ("antt", self.antt),
            ("antt_least", self.antt_least),
            ("queued_ms", self.queued_ms),
            ("p99_over_deadline", self.p99_over_deadline),
            ("latency_mean_ms", latency(self.latency.mean_ms)),
            ("latency_p50_ms", latency(self.latency.p50_ms)),
            ("latency_p95_ms", latency(self.latency.p95_ms)),
            ("latency_p99_ms", latency(self.latency.p99_ms)),
        ]
    }
}
