//! The questions that the rules ask about the moment a plan was made for.

use crate::catalog::Catalog;
use crate::ids::{AppId, BatchId, RequestId, WorkerId};
use crate::request::Progress;

/// A moment: the live state, or a window of it. The rules are generic over it and compiled once
/// for each, so that the live check pays nothing for the recorded one.
pub(super) trait PlanState {
    /// Apps, variants and workers.
    fn catalog(&self) -> &Catalog;

    /// A request that has not ended.
    fn request(&self, id: RequestId) -> Option<RequestView>;

    /// Number of pending requests.
    fn pending(&self) -> usize;

    /// A batch that waits in a queue and may be taken back.
    fn batch(&self, id: BatchId) -> Option<QueuedBatch>;

    /// Number of these batches.
    fn queued_batches(&self) -> usize;

    /// Requests in these batches.
    fn queued_requests(&self) -> usize;

    /// Whether a worker of the catalog takes dispatches.
    fn is_up(&self, worker: WorkerId) -> bool;

    /// Whether a worker of the catalog runs a batch.
    fn is_running(&self, worker: WorkerId) -> bool;

    /// Batches that wait in the queue of a worker of the catalog.
    fn queued(&self, worker: WorkerId) -> u32;

    /// Requests that are parked on a worker of the catalog or will be.
    fn parked(&self, worker: WorkerId) -> u32;
}

/// One request at that moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestView {
    pub(super) app: AppId,
    pub(super) stands: RequestStands,
    /// Stages it has run, and where.
    pub(super) progress: Option<Progress>,
    /// Its neighbours have been counted.
    pub(super) has_evidence: bool,
    /// The moment shows progress and evidence. Rules about them pass where it does not.
    pub(super) is_whole: bool,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStands {
    Pending,
    /// In a batch that waits in a worker's queue.
    Queued(BatchId),
    /// In a lane or in a running batch.
    Elsewhere,
}

/// One batch that may be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedBatch {
    pub(super) worker: WorkerId,
    /// Requests that it will park, counted by [`PlanState::parked`].
    pub(super) parks: u32,
}
