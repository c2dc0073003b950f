//! The batches that wait in queues, by their ids.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::Worker;
use crate::ids::{BatchId, WorkerId};

/// An index of all queues.
#[derive(Debug, Default)]
pub(super) struct QueuedBatches {
    worker_of: BTreeMap<BatchId, WorkerId>,
    /// By worker: its batches, and the requests in them.
    by_worker: Vec<(SmallVec<[BatchId; 2]>, usize)>,
    requests: usize,
}

// === impl QueuedBatches ===

impl QueuedBatches {
    /// Brings the index up to date for one worker.
    pub(super) fn set(&mut self, id: WorkerId, worker: &Worker) {
        if id.index() >= self.by_worker.len() {
            self.by_worker.resize_with(id.index() + 1, Default::default);
        }
        let (known, requests) = &mut self.by_worker[id.index()];
        let queue = || worker.queue.iter();
        if known.is_empty() && worker.queue.is_empty() {
            return;
        }
        for batch in known.iter() {
            // A batch that was given back has no other queue yet.
            self.worker_of.remove(batch);
        }
        known.clear();
        known.extend(queue().map(|batch| batch.id));
        self.worker_of
            .extend(known.iter().map(|&batch| (batch, id)));
        self.requests -= *requests;
        *requests = queue().map(|batch| batch.members.len()).sum();
        self.requests += *requests;
    }

    pub(super) fn worker_of(&self, batch: BatchId) -> Option<WorkerId> {
        self.worker_of.get(&batch).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.worker_of.len()
    }

    /// Requests in all of them together.
    pub(super) fn requests(&self) -> usize {
        self.requests
    }
}
