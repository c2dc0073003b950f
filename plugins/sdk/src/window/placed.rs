//! Requests that are parked, placed, or ended.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};

/// The variant and exit of a request that was answered by none.
const NONE: u32 = u32::MAX;

/// The stages that a parked request has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// The worker that holds its activations; it can go on nowhere else.
    pub worker: WorkerId,
    /// The variant it must go on with.
    pub variant: VariantId,
    /// Stages it has run.
    pub stages_run: u32,
}

/// A request that is not pending: it waits in a lane or a queue, or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The request.
    pub id: RequestId,
    /// Its app.
    pub app: AppId,
    /// When it arrived.
    pub arrival_us: u64,
    /// When its answer loses worth.
    pub deadline_us: u64,
    /// The worker it is on.
    pub worker: WorkerId,
    /// The variant that will answer it.
    pub variant: VariantId,
    /// Its batch; none in a lane.
    pub batch: Option<BatchId>,
    /// In a lane, queued or running.
    pub state: PlacedState,
}

/// The state of a placed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedState {
    /// In a route's lane.
    Lane,
    /// In a batch that waits in a worker's queue and can be revoked.
    Queued,
    /// In the running batch.
    Running,
}

/// A request that ended since the last window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub id: RequestId,
    /// Its app.
    pub app: AppId,
    /// How it ended.
    pub outcome: raw::Outcome,
    /// The variant that answered; none if evidence did, or no answer came.
    pub variant: Option<VariantId>,
    /// The exit that answered.
    pub exit: Option<ExitId>,
    /// From arrival to the end.
    pub latency_us: u64,
}

// === impl Placed ===

impl Placed {
    pub(super) fn from_raw(placed: &raw::Placed, i: usize) -> Self {
        Self {
            id: RequestId(placed.id[i]),
            app: AppId(placed.app[i]),
            arrival_us: placed.arrival[i],
            deadline_us: placed.deadline[i],
            worker: WorkerId(placed.worker[i]),
            variant: VariantId(placed.variant[i]),
            batch: Some(BatchId(placed.batch[i])).filter(|batch| batch.0 != 0),
            state: match placed.state[i] {
                0 => PlacedState::Lane,
                1 => PlacedState::Queued,
                _ => PlacedState::Running,
            },
        }
    }
}

// === impl Completion ===

impl Completion {
    pub(super) fn from_raw(ended: &raw::Completions, i: usize) -> Self {
        let some = |position: u32| Some(position).filter(|&position| position != NONE);
        Self {
            id: RequestId(ended.id[i]),
            app: AppId(ended.app[i]),
            outcome: ended.outcome[i],
            variant: some(ended.variant[i]).map(VariantId),
            exit: some(ended.exit[i]).map(ExitId),
            latency_us: ended.latency[i],
        }
    }
}

// === impl Progress ===

impl Progress {
    pub(super) fn from_raw(raw: &raw::Progress) -> Self {
        Self {
            worker: WorkerId(raw.worker),
            variant: VariantId(raw.variant),
            stages_run: raw.stages_run,
        }
    }
}
