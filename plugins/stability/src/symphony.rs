//! Symphony's deferred batching (section VI-A): each queue waits for a larger batch until its
//! oldest task must start, or a margin earlier: a live server calls a policy late by the time of its
//! timers, and a batch may take longer than profiled.

use crate::candidate::Candidate;
use crate::queue::AppQueue;

/// Of the batches that must start, or are full, the one that must start first.
pub(crate) fn due(
    candidates: impl Iterator<Item = Candidate>,
    queues: &[AppQueue],
    batch_max: usize,
    margin_us: f64,
) -> Option<Candidate> {
    let starts_us = |candidate: &Candidate| start_us(candidate, &queues[candidate.queue]);
    let is_due = |candidate: &Candidate| {
        // Smaller than the queue: the profile covers no larger batch.
        let waiting = queues[candidate.queue].waiting().len();
        let is_full = candidate.batch.size == batch_max || candidate.batch.size < waiting;
        is_full || starts_us(candidate) <= margin_us
    };
    candidates.filter(is_due).reduce(|best, other| {
        if starts_us(&other) < starts_us(&best) {
            other
        } else {
            best
        }
    })
}

/// When the first of the batches must start, in microseconds from now.
pub(crate) fn next_start_us(
    candidates: impl Iterator<Item = Candidate>,
    queues: &[AppQueue],
    margin_us: f64,
) -> Option<f64> {
    candidates
        .map(|candidate| start_us(&candidate, &queues[candidate.queue]) - margin_us)
        .min_by(f64::total_cmp)
}

/// The latest start with which the oldest task is in time, in microseconds from now.
fn start_us(candidate: &Candidate, queue: &AppQueue) -> f64 {
    queue.tau_us - candidate.longest_us - candidate.batch.latency_us
}
