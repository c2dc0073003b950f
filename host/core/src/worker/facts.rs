//! The properties of a worker that the indexes of a pool are made of.

use super::Worker;
use super::least::ABSENT;
use crate::lane::LaneQueue;
use crate::time::{Micros, Time};

/// Properties of one worker, as they were when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerFacts {
    pub(super) times: WorkerTimes,
    pub(super) up: bool,
    pub(super) idle: bool,
    pub(super) free: bool,
    /// Requests are parked on it.
    pub(super) parks: bool,
    /// Requests wait in a lane for others of their batch.
    pub(super) gathers: bool,
    /// It has a place, and no batch waits in its queue.
    pub(super) open: bool,
}

/// When the batches of a worker end, without the time of the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerTimes {
    /// Expected end of the overdue batches or of the running one, 0 without one.
    pub(super) end: Time,
    /// Expected time of the batches behind these.
    pub(super) behind: Micros,
    /// Expected time of all waiting batches together.
    pub(super) backlog: Micros,
}

// === impl WorkerFacts ===

impl WorkerFacts {
    pub(super) fn of(worker: &Worker) -> Self {
        Self {
            times: WorkerTimes::of(worker),
            up: worker.up,
            idle: worker.is_idle(),
            free: worker.is_free(),
            parks: worker.parked > 0,
            gathers: worker.lanes.iter().any(LaneQueue::is_gathering),
            open: worker.has_place() && worker.queue.is_empty(),
        }
    }

    /// When it has no batch left if the running one ends in time; [`ABSENT`] if it is away.
    pub(super) fn last_end(&self) -> u64 {
        match self.up {
            true => self.times.last_end().0,
            false => ABSENT,
        }
    }

    /// Counts in no index.
    pub(super) fn clear(&mut self) {
        *self = Self {
            times: self.times,
            ..Self::default()
        };
    }
}

// === impl WorkerTimes ===

impl WorkerTimes {
    pub(super) fn of(worker: &Worker) -> Self {
        let expected = worker.waiting().map(|batch| batch.expected);
        Self {
            end: worker.first_end().unwrap_or_default(),
            behind: worker.behind(),
            backlog: expected.fold(Micros::ZERO, |sum, time| sum + time),
        }
    }

    pub(super) fn last_end(&self) -> Time {
        self.end + self.behind + self.backlog
    }

    pub(super) fn busy_until(&self, now: Time) -> Time {
        self.end.max(now) + self.behind
    }

    pub(super) fn free_at(&self, now: Time) -> Time {
        self.busy_until(now) + self.backlog
    }

    /// A batch waits behind the running one, so that its end moves on with the time once the running one is
    /// overdue.
    pub(super) fn has_waiting(&self) -> bool {
        self.behind > Micros::ZERO || self.backlog > Micros::ZERO
    }
}
