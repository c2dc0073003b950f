//! A worker as the core keeps it: what runs, what waits, what is resident.

mod set;

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::catalog::{Catalog, WorkerSpec};
use crate::ids::{BatchId, ExitId, RequestId, VariantId, WorkerId};
use crate::residents::{SOON_MAX, Soon};
use crate::route::LaneQueue;
use crate::time::{Micros, Time};

pub(crate) use set::WorkerSet;

/// Requests of one batch.
pub type Members = SmallVec<[RequestId; 8]>;

/// A batch that waits or runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) id: BatchId,
    pub(crate) variant: VariantId,
    pub(crate) from_stage: u32,
    pub(crate) to_stage: u32,
    pub(crate) exit: Option<ExitId>,
    pub(crate) members: Members,
    /// Run time the profile promises.
    pub(crate) expected: Micros,
    /// Who decided it, and in which window.
    pub(crate) decided: Decided,
    /// Placed by the host for a client that pinned its variant: not the policy's to revoke.
    pub(crate) pinned: bool,
}

/// Who decided something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The window, 0 when none was needed (routes, pinned requests).
    pub window: u64,
    /// Label of the policy that served it.
    pub by: Arc<str>,
}

/// What a worker is doing.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) batch: Batch,
    pub(crate) since: Time,
    pub(crate) expected_end: Time,
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) up: bool,
    pub(crate) running: Option<Running>,
    pub(crate) queue: VecDeque<Batch>,
    pub(crate) lanes: Vec<LaneQueue>,
    pub(crate) resident: Vec<VariantId>,
    pub(crate) free_bytes: u64,
    /// What the driver was last asked to load ahead.
    pub(crate) prepared: Soon,
    /// Requests whose activations are here.
    pub(crate) parked: u32,
}

// === impl Worker ===

impl Worker {
    pub(crate) fn new(spec: &WorkerSpec) -> Self {
        Self {
            up: true,
            running: None,
            queue: VecDeque::new(),
            lanes: Vec::new(),
            resident: Vec::new(),
            free_bytes: spec.memory_bytes,
            prepared: Soon::new(),
            parked: 0,
        }
    }

    /// Nothing runs and nothing waits, and it could take work.
    pub(crate) fn is_idle(&self) -> bool {
        self.up
            && self.running.is_none()
            && self.queue.is_empty()
            && self.lanes.iter().all(|lane| lane.waiting.is_empty())
    }

    /// Runs nothing and has a batch, or requests for one, that it can run now.
    pub(crate) fn could_start(&self) -> bool {
        let has_batch = !self.queue.is_empty() || self.lanes.iter().any(LaneQueue::is_ready);
        self.up && self.running.is_none() && has_batch
    }

    /// When the running batch should end.
    pub(crate) fn busy_until(&self, now: Time) -> Time {
        self.running
            .as_ref()
            .map_or(now, |running| running.expected_end.max(now))
    }

    /// When the queue should be empty too. Lanes are not counted: how their requests will
    /// be batched is not decided yet.
    pub(crate) fn free_at(&self, now: Time) -> Time {
        let busy_until = self.busy_until(now);
        let queue = self.queue.iter();
        queue.fold(busy_until, |at, batch| at + batch.expected)
    }

    /// Variants of what waits here, queue before lanes, each once.
    pub(crate) fn soon(&self) -> Soon {
        let queued = self.queue.iter().map(|batch| batch.variant);
        let lanes = self.lanes.iter().filter(|lane| !lane.waiting.is_empty());
        let mut soon = Soon::new();
        for variant in queued.chain(lanes.map(|lane| lane.variant)) {
            if soon.len() == SOON_MAX {
                break;
            }
            if !soon.contains(&variant) {
                soon.push(variant);
            }
        }
        soon
    }

    /// Requests that will be parked here by what runs and waits, beyond those parked now.
    pub(crate) fn will_park(&self) -> u32 {
        self.running
            .iter()
            .map(|running| &running.batch)
            .chain(&self.queue)
            .filter(|batch| batch.exit.is_none() && batch.from_stage == 0)
            .map(|batch| batch.members.len() as u32)
            .sum()
    }

    /// Run time the profile promises for stages on this worker, the load of a variant that
    /// is not resident included. Zero where the profile has no such cell.
    pub(crate) fn expected(&self, catalog: &Catalog, worker: WorkerId, batch: &Batch) -> Micros {
        let Some(spec) = catalog.worker(worker) else {
            return Micros::ZERO;
        };
        let run = catalog
            .profile
            .latency(
                spec.kind,
                batch.variant,
                batch.from_stage,
                batch.to_stage,
                batch.exit,
                batch.members.len() as u32,
            )
            .unwrap_or_default();
        let after = self.queue.back().map(|b| b.variant);
        if self.resident.contains(&batch.variant) || after == Some(batch.variant) {
            run
        } else {
            run + catalog.profile.load_time(spec.kind, batch.variant)
        }
    }
}
