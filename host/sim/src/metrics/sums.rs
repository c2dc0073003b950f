//! Counts and sums of the requests of one app in one phase.

use switchyard_core::request::{Outcome, Rejection};
use switchyard_core::time::Micros;

use super::latency::Histogram;

/// Sums over requests, in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestSums {
    pub(super) arrivals: u64,
    pub(super) in_time: u64,
    pub(super) late: u64,
    pub(super) short_circuited: u64,
    pub(super) rejected: u64,
    pub(super) queue_full: u64,
    pub(super) dropped: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) heavy: u64,
    pub(super) correct: u64,
    pub(super) correct_in_time: u64,
    pub(super) profiled: f64,
    pub(super) profiled_in_time: f64,
    pub(super) expected: f64,
    pub(super) expected_in_time: f64,
    pub(super) utility: f64,
    pub(super) utility_sampled: f64,
    /// Turnaround over solo-best.
    pub(super) slowdown: f64,
    pub(super) latency_us: u64,
    pub(super) waited_us: u64,
    pub(super) lateness_us: u64,
    pub(super) latencies: Histogram,
    /// Latency in thousandths of the deadline.
    pub(super) over_deadline: Histogram,
}

/// The quality of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredRequest {
    /// Accuracy of the exit on the test set.
    pub(super) profiled: f64,
    /// Its recall for the class of the request.
    pub(super) expected: f64,
    /// Whether it named the right class.
    pub(super) correct: bool,
    /// The class it named; absent if the exit's confusion matrix is unknown.
    pub(super) predicted: Option<usize>,
    pub(super) in_time: bool,
    pub(super) heavy: bool,
    pub(super) short_circuit: bool,
}

/// The times of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTimes {
    /// From the arrival to the deadline.
    pub(super) deadline: Micros,
    /// From the arrival to the answer.
    pub(super) latency: Micros,
    /// From the arrival to the start of the batch that answered.
    pub(super) waited: Micros,
    /// The shortest latency of the app, alone on an idle worker.
    pub(super) solo_best: Micros,
}

// === impl RequestSums ===

impl RequestSums {
    /// The sum of all parts.
    pub(super) fn total<'a>(parts: impl IntoIterator<Item = &'a Option<Box<Self>>>) -> Self {
        let parts = parts.into_iter().flatten();
        parts.fold(Self::default(), |mut total, part| {
            total.add(part);
            total
        })
    }

    /// `loss` is the share of the utility that the app's penalty takes.
    pub(super) fn answered(&mut self, answer: &AnsweredRequest, times: &RequestTimes, loss: f64) {
        let &RequestTimes {
            deadline,
            latency,
            waited,
            solo_best,
        } = times;
        let correct = f64::from(u8::from(answer.correct));
        self.correct += u64::from(answer.correct);
        self.heavy += u64::from(answer.heavy);
        self.short_circuited += u64::from(answer.short_circuit);
        self.profiled += answer.profiled;
        self.expected += answer.expected;
        // SneakPeek eq. 2.
        self.utility += answer.expected * (1.0 - loss);
        self.utility_sampled += correct * (1.0 - loss);
        if answer.in_time {
            self.in_time += 1;
            self.correct_in_time += u64::from(answer.correct);
            self.profiled_in_time += answer.profiled;
            self.expected_in_time += answer.expected;
        } else {
            self.late += 1;
            self.lateness_us += latency.0.saturating_sub(deadline.0);
        }
        self.slowdown += latency.0 as f64 / solo_best.0.max(1) as f64;
        self.latency_us += latency.0;
        self.waited_us += waited.0;
        self.latencies.record(latency.0);
        self.over_deadline
            .record(latency.0.saturating_mul(1_000) / deadline.0.max(1));
    }

    pub(super) fn unanswered(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Rejected(
                Rejection::PendingFull
                | Rejection::LaneFull
                | Rejection::Overloaded
                | Rejection::AboveShare,
            ) => &mut self.queue_full,
            Outcome::Rejected(_) => &mut self.rejected,
            Outcome::Dropped(_) => &mut self.dropped,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::Failed(_) | Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => {
                &mut self.failed
            }
        };
        *count += 1;
    }

    fn add(&mut self, other: &Self) {
        self.arrivals += other.arrivals;
        self.in_time += other.in_time;
        self.late += other.late;
        self.short_circuited += other.short_circuited;
        self.rejected += other.rejected;
        self.queue_full += other.queue_full;
        self.dropped += other.dropped;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.heavy += other.heavy;
        self.correct += other.correct;
        self.correct_in_time += other.correct_in_time;
        self.profiled += other.profiled;
        self.profiled_in_time += other.profiled_in_time;
        self.expected += other.expected;
        self.expected_in_time += other.expected_in_time;
        self.utility += other.utility;
        self.utility_sampled += other.utility_sampled;
        self.slowdown += other.slowdown;
        self.latency_us += other.latency_us;
        self.waited_us += other.waited_us;
        self.lateness_us += other.lateness_us;
        self.latencies.add(&other.latencies);
        self.over_deadline.add(&other.over_deadline);
    }
}
