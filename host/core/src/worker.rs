//! A worker as the core keeps it: its running batch, its queue and lanes, its resident variants.

mod classes;
mod facts;
mod least;
mod marks;
mod overrun;
mod queues;
mod set;
mod shown;

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::catalog::{Catalog, WorkerSpec};
use crate::cost::Cost;
use crate::estimate::BatchSeries;
use crate::ids::{BatchId, ExitId, KindId, RequestId, VariantId, WorkerId};
use crate::lane::LaneQueue;
use crate::residents::{SOON_MAX, Soon};
use crate::time::{Micros, Time};

pub(crate) use set::WorkerSet;
pub(crate) use shown::{WorkerRow, columns_of, undo};

/// Requests of one batch.
pub type Members = SmallVec<[RequestId; 8]>;

/// A batch that waits or runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerBatch {
    pub(crate) id: BatchId,
    pub(crate) variant: VariantId,
    pub(crate) from_stage: u32,
    pub(crate) to_stage: u32,
    pub(crate) exit: Option<ExitId>,
    pub(crate) members: Members,
    /// Of its requests together.
    pub(crate) cost: Cost,
    /// Predicted time on the worker, a load that it has to wait for included.
    pub(crate) expected: Micros,
    /// The load that it has to wait for.
    pub(crate) load: Micros,
    /// The policy that decided it, and the window.
    pub(crate) decided: Decided,
    /// Of requests that the host held: it starts at once and waits in no queue.
    pub(crate) pinned: bool,
    /// Placed by the host for requests that will be late.
    pub(crate) late: bool,
}

/// The policy and the window of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The window; 0 for decisions of the host (routes, pinned requests).
    pub window: u64,
    /// Label of the policy that served it.
    pub by: Arc<str>,
}

/// The batch that a worker runs.
#[derive(Clone, Debug)]
pub(crate) struct RunningBatch {
    pub(crate) batch: WorkerBatch,
    pub(crate) since: Time,
    pub(crate) expected_end: Time,
    /// When its worker counts as lost.
    pub(crate) overdue_at: Time,
}

/// One worker: its state, where [`WorkerSpec`] is its configuration.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) up: bool,
    /// It takes no more batches: the end of an overdue one does not bring it back.
    pub(crate) leaving: bool,
    /// Its lives so far, from 1 on.
    pub(crate) incarnation: u32,
    pub(crate) running: Option<RunningBatch>,
    /// Batches that it has behind the running one, in their order.
    pub(crate) sent: VecDeque<RunningBatch>,
    /// Batches that it may have at a time.
    pub(crate) outstanding: usize,
    /// The batches that it had when one of them was overdue. They may still end, keep their places until
    /// then, and run before the others.
    pub(crate) overdue: Vec<RunningBatch>,
    /// Batches of one request that failed in larger ones. They run before the queue, are no
    /// policy's to revoke, and are no part of `queue_max`.
    pub(crate) alone: VecDeque<WorkerBatch>,
    pub(crate) queue: VecDeque<WorkerBatch>,
    pub(crate) lanes: Vec<LaneQueue>,
    pub(crate) resident: Vec<VariantId>,
    pub(crate) free_bytes: u64,
    /// The variants that the driver was last told to load ahead.
    pub(crate) prepared: Soon,
    /// Requests whose activations are here.
    pub(crate) parked: u32,
    /// Its last batch was one that the host held: the next one is the policy's.
    pub(crate) after_held: bool,
}

// === impl WorkerBatch ===

impl WorkerBatch {
    /// Requests that it adds to those parked on its worker.
    pub(crate) fn parks(&self) -> u32 {
        match self.exit.is_none() && self.from_stage == 0 {
            true => self.members.len() as u32,
            false => 0,
        }
    }

    /// Its requests cost little more than those of the profile, so that it shows how the app's
    /// batches are. A long text among short ones does not.
    pub(crate) fn is_usual(&self) -> bool {
        self.cost <= Cost::rows(2 * self.members.len())
    }

    /// Takes a request that costs this much out.
    pub(crate) fn remove(&mut self, id: RequestId, cost: Cost) {
        let before = self.members.len();
        self.members.retain(|member| *member != id);
        if self.members.len() < before {
            self.cost = self.cost - cost;
        }
    }

    /// The batches with comparable latencies.
    pub(crate) fn series(&self, kind: KindId) -> BatchSeries {
        BatchSeries {
            kind,
            variant: self.variant,
            from_stage: self.from_stage,
            to_stage: self.to_stage,
            exit: self.exit,
            size: self.cost.ceil(),
        }
    }
}

// === impl Worker ===

impl Worker {
    pub(crate) fn new(spec: &WorkerSpec) -> Self {
        Self {
            up: true,
            leaving: false,
            incarnation: 1,
            running: None,
            sent: VecDeque::new(),
            outstanding: spec.outstanding.max(1) as usize,
            overdue: Vec::new(),
            alone: VecDeque::new(),
            queue: VecDeque::new(),
            lanes: Vec::new(),
            resident: Vec::new(),
            free_bytes: spec.memory_bytes,
            prepared: Soon::new(),
            parked: 0,
            after_held: false,
        }
    }

    /// It has fewer batches than it may have at a time.
    pub(crate) fn has_place(&self) -> bool {
        let running = usize::from(self.running.is_some());
        running + self.sent.len() + self.overdue.len() < self.outstanding
    }

    /// Nothing runs, nothing would start, and the worker takes dispatches.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none() && self.is_free()
    }

    /// A batch would be sent at once: nothing that waits would start, and the worker takes dispatches. A
    /// lane below its `min_batch` may wait for ever.
    pub(crate) fn is_free(&self) -> bool {
        self.up
            && self.has_place()
            && self.alone.is_empty()
            && self.queue.is_empty()
            && !self.lanes.iter().any(LaneQueue::is_ready)
    }

    /// Has a place although a batch waits, or enough requests for one do.
    pub(crate) fn could_start(&self) -> bool {
        let has_batch = !self.alone.is_empty()
            || !self.queue.is_empty()
            || self.lanes.iter().any(LaneQueue::is_ready);
        self.up && self.has_place() && has_batch
    }

    /// When the batches that it has should end.
    pub(crate) fn busy_until(&self, now: Time) -> Time {
        let end = self.first_end();
        end.map_or(now, |end| end.max(now)) + self.behind()
    }

    /// Expected end of the overdue batches if any runs, otherwise of the running one.
    pub(crate) fn first_end(&self) -> Option<Time> {
        let first = self.last_overdue().or(self.running.as_ref());
        first.map(|first| first.expected_end)
    }

    /// The time of the batches behind these.
    pub(crate) fn behind(&self) -> Micros {
        let waits = self.last_overdue().is_some();
        let running = self.running.iter().filter(|_| waits);
        let times = running.chain(&self.sent).map(|sent| sent.batch.expected);
        times.fold(Micros::ZERO, |sum, time| sum + time)
    }

    /// The last of the overdue batches. They count while the worker serves.
    fn last_overdue(&self) -> Option<&RunningBatch> {
        self.overdue.last().filter(|_| self.up)
    }

    /// The batches that it has, the running one first.
    pub(crate) fn has(&self) -> impl Iterator<Item = &RunningBatch> {
        self.running.iter().chain(&self.sent)
    }

    /// Takes the batches that it has, the running one first.
    pub(crate) fn take_all(&mut self) -> Vec<RunningBatch> {
        self.running
            .take()
            .into_iter()
            .chain(self.sent.drain(..))
            .collect()
    }

    /// The batches that wait, in the order in which they start.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &WorkerBatch> {
        self.alone.iter().chain(&self.queue)
    }

    /// Variants of the waiting batches, then of the lanes, each once.
    pub(crate) fn soon(&self) -> Soon {
        let queued = self.waiting().map(|batch| batch.variant);
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

    /// Requests that the running and the waiting batches will park here, beyond those parked
    /// now.
    pub(crate) fn will_park(&self) -> u32 {
        let has = self.has().map(|running| &running.batch);
        let batches = has.chain(self.waiting());
        batches.map(WorkerBatch::parks).sum()
    }

    /// Computation of a batch on this worker by the profile. Zero where the profile has no latency
    /// for it.
    pub(crate) fn profiled(
        &self,
        catalog: &Catalog,
        worker: WorkerId,
        batch: &WorkerBatch,
    ) -> Micros {
        let latency = catalog.worker(worker).and_then(|spec| {
            catalog.profile.latency_of(
                spec.kind,
                batch.variant,
                batch.from_stage,
                batch.to_stage,
                batch.exit,
                batch.cost,
            )
        });
        latency.unwrap_or_default()
    }

    /// Time of the load that a batch at the end of the queue has to wait for. Zero if its variant is
    /// resident by then.
    pub(crate) fn load(&self, catalog: &Catalog, worker: WorkerId, batch: &WorkerBatch) -> Micros {
        let Some(spec) = catalog.worker(worker) else {
            return Micros::ZERO;
        };
        let sent = self.sent.back().map(|sent| &sent.batch);
        let after = self.queue.back().or(sent).map(|b| b.variant);
        match self.resident.contains(&batch.variant) || after == Some(batch.variant) {
            true => Micros::ZERO,
            false => catalog.profile.load_time(spec.kind, batch.variant),
        }
    }
}
