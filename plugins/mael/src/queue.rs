//! A worker's queue: running, waiting and sliced tasks.

use switchyard_sdk::{BatchId, RequestId, WorkerId};

use crate::score::ScoreRule;

/// Sums of violation degrees that differ by less are equal: they were added in another order.
const DEGREES_ALIKE: f64 = 1e-9;

/// A worker with its running and waiting tasks, in the order in which they are to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkerQueue {
    pub(crate) worker: WorkerId,
    /// The worker accepts launches.
    pub(crate) is_up: bool,
    /// Free entries of the host's queue.
    pub(crate) room: u32,
    /// Until the running batch ends.
    pub(crate) busy_us: u64,
    /// The running batch is a long task that is not sliced.
    pub(crate) runs_long: bool,
    pub(crate) order: Vec<QueueEntry>,
}

/// One request that is still to run, or a batch of an earlier policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueueEntry {
    pub(crate) id: RequestId,
    /// Work left until the answer, without the running batch.
    pub(crate) work_us: u64,
    /// Time since the arrival.
    pub(crate) age_us: u64,
    /// Time from the arrival to the deadline.
    pub(crate) slo_us: u64,
    pub(crate) state: EntryState,
    pub(crate) length: RunLength,
}

/// Where the next launch of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// In the host's queue. `mine`: this policy put it there and may revoke it.
    Queued { batch: BatchId, mine: bool },
    /// In the host's queue of worker `from`; to be revoked and launched elsewhere.
    Moved { batch: BatchId, from: WorkerId },
    /// Its slice is running.
    Running,
    /// Pending, with its index in the window.
    Pending(usize),
}

/// Whether an entry is long, and how far its slices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunLength {
    Short,
    /// Long and not sliced.
    Long,
    /// Sliced; its first slice has been launched.
    Begun,
    /// Sliced; its first slice has not been launched.
    Sliced,
}

// === impl WorkerQueue ===

impl WorkerQueue {
    /// `wait_time(p)`: until the queue is empty.
    pub(crate) fn wait_us(&self) -> u64 {
        self.busy_us + self.order.iter().map(|entry| entry.work_us).sum::<u64>()
    }

    /// The position of a new entry with the least average expected latency of this queue, the last
    /// of equal positions. Under [`ScoreRule::Slo`] the least violations count first, as in the
    /// score.
    ///
    /// An entry delays those behind it by its own work and saves the work of those it passes, so
    /// one pass from the end finds the position.
    pub(crate) fn best_position(&self, rule: ScoreRule, entry: &QueueEntry) -> usize {
        let new_us = entry.work_us;
        let mut ends: Vec<u64> = Vec::with_capacity(self.order.len());
        let mut end_us = self.busy_us;
        for waiting in &self.order {
            end_us += waiting.work_us;
            ends.push(end_us);
        }
        let missed = |entry: &QueueEntry, end_us: u64| match rule {
            ScoreRule::Latency => 0.0,
            ScoreRule::Slo => entry.missed(end_us),
        };
        // At the end: only its own latency.
        let mut delay_us = i128::from(end_us + new_us);
        let mut others = 0.0;
        let mut best = (missed(entry, end_us + new_us), delay_us, self.order.len());
        for at in (0..self.order.len()).rev() {
            let (waiting, waiting_end_us) = (&self.order[at], ends[at]);
            let start_us = waiting_end_us - waiting.work_us;
            others += missed(waiting, waiting_end_us + new_us) - missed(waiting, waiting_end_us);
            delay_us += i128::from(new_us) - i128::from(waiting.work_us);
            let here = (others + missed(entry, start_us + new_us), delay_us, at);
            let less = best.0 - here.0;
            if less > DEGREES_ALIKE || less >= -DEGREES_ALIKE && here.1 < best.1 {
                best = here;
            }
        }
        best.2
    }
}

// === impl QueueEntry ===

impl QueueEntry {
    /// Expected latency over SLO if an end `end_us` from now misses the SLO, otherwise 0.
    pub(crate) fn missed(&self, end_us: u64) -> f64 {
        let expected_us = self.age_us + end_us;
        match expected_us > self.slo_us {
            true => expected_us as f64 / self.slo_us.max(1) as f64,
            false => 0.0,
        }
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_overdue(&self) -> bool {
        self.age_us > self.slo_us
    }
}
