//! Symphony's deferred batching, as section VI-A describes it: each queue by itself waits for a
//! larger batch until its oldest task must start.

use crate::queue::Queue;
use crate::select::Candidate;

/// Of the batches that must start, or can grow no more, the one that must start first.
pub(crate) fn due(
    candidates: impl Iterator<Item = Candidate>,
    queues: &[Queue],
    batch_max: usize,
) -> Option<Candidate> {
    let starts_us = |candidate: &Candidate| start_us(candidate, &queues[candidate.queue]);
    let is_due = |candidate: &Candidate| {
        // Fewer than are waiting: the profile ends there.
        let waiting = queues[candidate.queue].waiting().len();
        let is_full = candidate.batch.size == batch_max || candidate.batch.size < waiting;
        is_full || starts_us(candidate) <= 0.0
    };
    candidates.filter(is_due).reduce(|best, other| {
        if starts_us(&other) < starts_us(&best) {
            other
        } else {
            best
        }
    })
}

/// When the first of these batches must start, in microseconds from now.
pub(crate) fn next_start_us(
    candidates: impl Iterator<Item = Candidate>,
    queues: &[Queue],
) -> Option<f64> {
    candidates
        .map(|candidate| start_us(&candidate, &queues[candidate.queue]))
        .min_by(f64::total_cmp)
}

/// The last moment at which a batch starts and its oldest task is in time.
fn start_us(candidate: &Candidate, queue: &Queue) -> f64 {
    queue.tau_us - candidate.longest_us - candidate.batch.latency_us
}
