//! The requests that wait in one lane of a worker, and how they are batched.

use std::collections::VecDeque;

use crate::ids::{AppId, ExitId, RequestId, VariantId};
use crate::time::Time;

/// One lane's queue. Fed by a route, emptied in batches by its worker.
#[derive(Clone, Debug)]
pub(crate) struct LaneQueue {
    pub(crate) app: AppId,
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    pub(crate) min_batch: u32,
    pub(crate) max_batch: u32,
    /// Requests that may wait.
    pub(crate) capacity: u32,
    pub(crate) waiting: VecDeque<RequestId>,
    /// Not later than the earliest deadline of the waiting requests.
    pub(crate) earliest: Time,
    /// A deadline is too near to wait for `min_batch` requests. Until the lane is empty.
    pub(crate) is_due: bool,
}

// === impl LaneQueue ===

impl LaneQueue {
    pub(crate) fn new(app: AppId, variant: VariantId, exit: ExitId) -> Self {
        Self {
            app,
            variant,
            exit,
            min_batch: 1,
            max_batch: 1,
            capacity: 1,
            waiting: VecDeque::new(),
            earliest: Time::NEVER,
            is_due: false,
        }
    }

    pub(crate) fn push(&mut self, id: RequestId, deadline: Time) {
        self.earliest = self.earliest.min(deadline);
        self.waiting.push_back(id);
    }

    /// Takes the oldest requests out.
    pub(crate) fn take(&mut self, size: usize) -> impl Iterator<Item = RequestId> {
        if size >= self.waiting.len() {
            (self.earliest, self.is_due) = (Time::NEVER, false);
        }
        self.waiting.drain(..size)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity as usize
    }

    /// Enough requests wait for a batch, or one that cannot wait longer.
    pub(crate) fn is_ready(&self) -> bool {
        let enough = self.is_due || self.waiting.len() >= self.min_batch as usize;
        !self.waiting.is_empty() && enough
    }

    /// Requests wait, too few for a batch.
    pub(crate) fn is_gathering(&self) -> bool {
        !self.waiting.is_empty() && !self.is_ready()
    }

    pub(crate) fn leads_to(&self, variant: VariantId, exit: ExitId) -> bool {
        self.variant == variant && self.exit == exit
    }
}
