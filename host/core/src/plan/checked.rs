//! A plan checked whole against the live state, before any of it is applied.

use super::rules::{self, CheckBuffers};
use super::state::{PlanState, QueuedBatch, RequestStands, RequestView};
use super::{Plan, PlanError};
use crate::catalog::Catalog;
use crate::ids::{BatchId, RequestId, WorkerId};
use crate::table::{RequestState, RequestTable};
use crate::worker::WorkerSet;

/// A plan whose every entry can be applied to the state it was checked against.
#[derive(Debug)]
pub struct CheckedPlan(Plan);

/// The live state that a plan is checked against and applied to.
pub(crate) struct LiveState<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) table: &'a RequestTable,
    /// With an up-to-date index of the queues if the plan takes batches back.
    pub(crate) workers: &'a WorkerSet,
}

// === impl CheckedPlan ===

impl CheckedPlan {
    /// Checks a plan; the only way to one that the scheduler applies.
    ///
    /// # Errors
    /// The plan itself, for its buffers, and the first reason to refuse it.
    pub(crate) fn try_new(
        plan: Plan,
        state: &LiveState<'_>,
        buffers: &mut CheckBuffers,
    ) -> Result<Self, Box<(Plan, PlanError)>> {
        match rules::check(&plan, state, buffers) {
            Ok(()) => Ok(Self(plan)),
            Err(error) => Err(Box::new((plan, error))),
        }
    }

    /// The plan that passed.
    pub fn plan(&self) -> &Plan {
        &self.0
    }

    /// The plan that passed, as an unchecked one.
    pub fn into_plan(self) -> Plan {
        self.0
    }
}

// === impl LiveState ===

impl PlanState for LiveState<'_> {
    #[inline]
    fn catalog(&self) -> &Catalog {
        self.catalog
    }

    #[inline]
    fn request(&self, id: RequestId) -> Option<RequestView> {
        let entry = self.table.get(id)?;
        Some(RequestView {
            app: entry.request.app,
            stands: match entry.state() {
                RequestState::Pending => RequestStands::Pending,
                RequestState::Queued(_, batch) => RequestStands::Queued(batch),
                RequestState::Lane(_)
                | RequestState::Held
                | RequestState::Running(..)
                | RequestState::Late => RequestStands::Elsewhere,
            },
            progress: entry.progress,
            has_evidence: entry.evidence.is_some(),
            is_whole: true,
        })
    }

    #[inline]
    fn pending(&self) -> usize {
        self.table.pending().len()
    }

    fn batch(&self, id: BatchId) -> Option<QueuedBatch> {
        let worker = self.workers.queue_of(id)?;
        let mut queue = self.workers[worker].queue.iter();
        let batch = queue.find(|batch| batch.id == id)?;
        let parks = batch.parks();
        Some(QueuedBatch { worker, parks })
    }

    fn queued_batches(&self) -> usize {
        self.workers.queued_batches()
    }

    fn queued_requests(&self) -> usize {
        self.workers.queued_requests()
    }

    #[inline]
    fn is_up(&self, worker: WorkerId) -> bool {
        self.workers[worker].up
    }

    #[inline]
    fn is_running(&self, worker: WorkerId) -> bool {
        !self.workers[worker].has_place()
    }

    #[inline]
    fn queued(&self, worker: WorkerId) -> u32 {
        self.workers[worker].queue.len() as u32
    }

    fn parked(&self, worker: WorkerId) -> u32 {
        let held = &self.workers[worker];
        held.parked + held.will_park()
    }
}
