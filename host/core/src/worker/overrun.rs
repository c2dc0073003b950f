//! Workers whose queues end later the longer the running batch takes: it should have ended, and others
//! wait behind it.

use std::collections::BTreeSet;

use super::facts::WorkerTimes;
use super::marks::MarkedWorkers;
use crate::ids::WorkerId;
use crate::time::Time;

/// Workers with waiting batches, by the expected end of the running one.
#[derive(Debug, Default)]
pub(super) struct Overruns {
    ends: BTreeSet<(Time, WorkerId)>,
    /// That end has passed.
    moving: MarkedWorkers,
}

// === impl Overruns ===

impl Overruns {
    /// The times of a worker change.
    pub(super) fn change(&mut self, worker: WorkerId, before: &WorkerTimes, after: &WorkerTimes) {
        if before.has_waiting() {
            self.moving.remove(worker);
            self.ends.remove(&(before.end, worker));
        }
        if after.has_waiting() {
            self.ends.insert((after.end, worker));
        }
    }

    /// Finds the workers that move since `now`; calls `found` for each.
    pub(super) fn advance(&mut self, now: Time, mut found: impl FnMut(WorkerId)) {
        while let Some(&(end, worker)) = self.ends.first()
            && end < now
        {
            self.ends.pop_first();
            self.moving.mark(worker);
            found(worker);
        }
    }

    pub(super) fn moves(&self, worker: WorkerId) -> bool {
        self.moving.has(worker)
    }

    pub(super) fn moving(&self) -> &[WorkerId] {
        self.moving.list()
    }
}
