//! The requests that wait in one lane of a worker, and how they are batched.

use std::collections::VecDeque;

use crate::ids::{AppId, ExitId, RequestId, VariantId};

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
}

// === impl LaneQueue ===

impl LaneQueue {
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity as usize
    }

    /// Enough requests wait for a batch.
    pub(crate) fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && self.waiting.len() >= self.min_batch as usize
    }

    pub(crate) fn leads_to(&self, variant: VariantId, exit: ExitId) -> bool {
        self.variant == variant && self.exit == exit
    }
}
