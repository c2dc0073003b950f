//! A worker's queue as far as it is known: what runs, what waits, what was taken apart.

use switchyard_sdk::{BatchId, RequestId, WorkerId};

use crate::score::Rule;

/// Sums of violations that differ by less are the same, added up in another order.
const DEGREES_ALIKE: f64 = 1e-9;

/// A worker and what is ahead on it, in the order in which it is to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) worker: WorkerId,
    /// It takes dispatches.
    pub(crate) is_up: bool,
    /// Batches it can take.
    pub(crate) room: u32,
    /// Until what runs now ends.
    pub(crate) busy_us: u64,
    /// What runs now is a long run in one piece.
    pub(crate) runs_long: bool,
    pub(crate) order: Vec<Entry>,
}

/// One request, or a batch of a policy that served before, that is still to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: RequestId,
    /// Work that is left until its answer, what runs now not counted.
    pub(crate) work_us: u64,
    /// Since it arrived.
    pub(crate) age_us: u64,
    /// From its arrival to its deadline.
    pub(crate) slo_us: u64,
    pub(crate) place: Place,
    /// It runs in slices, or is long and does not.
    pub(crate) length: Length,
}

/// Where the next part of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the host's queue. `mine`: this policy put it there, and may take it back.
    Queued { batch: BatchId, mine: bool },
    /// In a queue of the host's, from which it is to be taken back and dispatched anew.
    Moved { batch: BatchId, from: WorkerId },
    /// Not to be had before the part that runs now has ended.
    Running,
    /// Pending, by its position among the window's requests.
    Pending(usize),
}

/// What cutting has to do with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    /// It could be sliced and is in one piece.
    Long,
    /// Some of it has run, and the rest comes in parts.
    Begun,
    /// Its first part has not run.
    Sliced,
}

// === impl Line ===

impl Line {
    /// `wait_time(p)`: until all that is here is done.
    pub(crate) fn wait_us(&self) -> u64 {
        self.busy_us + self.order.iter().map(|entry| entry.work_us).sum::<u64>()
    }

    /// Where a new entry makes the average expected latency of this line least, the last of
    /// equal places. Under [`Rule::Slo`] violations are least first, as in the candidate's score.
    ///
    /// An entry in front of another delays it by its own work; one step towards the head
    /// spares it what it overtakes. So one pass from the end finds the place.
    pub(crate) fn best_place(&self, rule: Rule, entry: &Entry) -> usize {
        let new_us = entry.work_us;
        let mut ends: Vec<u64> = Vec::with_capacity(self.order.len());
        let mut end_us = self.busy_us;
        for waiting in &self.order {
            end_us += waiting.work_us;
            ends.push(end_us);
        }
        let missed = |entry: &Entry, end_us: u64| match rule {
            Rule::Latency => 0.0,
            Rule::Slo => entry.missed(end_us),
        };
        // Of the place at the end: its own latency, which others do not have to bear.
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

// === impl Entry ===

impl Entry {
    /// Expected latency over SLO where it is missed by an end so far from now, else 0.
    pub(crate) fn missed(&self, end_us: u64) -> f64 {
        let expected_us = self.age_us + end_us;
        match expected_us > self.slo_us {
            true => expected_us as f64 / self.slo_us.max(1) as f64,
            false => 0.0,
        }
    }

    /// Its deadline has passed.
    pub(crate) fn is_overdue(&self) -> bool {
        self.age_us > self.slo_us
    }
}
