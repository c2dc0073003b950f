//! A plan as tests read it.

use crate::bindings::exports::switchyard::policy::scheduling as raw;

/// A plan, its batches with their requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// The dispatches, in order.
    pub batches: Vec<Batch>,
    /// Requests answered from their evidence.
    pub answers: Vec<u64>,
    /// Requests refused.
    pub rejects: Vec<u64>,
    /// Batches taken back.
    pub revokes: Vec<u64>,
    /// Routes of arrivals from now on.
    pub routes: Vec<raw::Route>,
    /// The time of the window that the plan asks for.
    pub wake_us: Option<u64>,
}

/// One dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Position of the worker.
    pub worker: u32,
    /// Position of the variant.
    pub variant: u32,
    /// First stage run and one past the last.
    pub stages: (u32, u32),
    /// The exit that answers; none parks.
    pub exit: Option<u32>,
    /// Request ids, in order.
    pub requests: Vec<u64>,
}

// === impl Decisions ===

impl Decisions {
    /// Reads a plan.
    pub fn of(plan: &raw::Plan) -> Self {
        let mut members = plan.members.iter().copied();
        let batches = plan.dispatches.iter().map(|d| Batch {
            worker: d.worker,
            variant: d.variant,
            stages: (d.from_stage, d.to_stage),
            exit: d.exit,
            requests: members.by_ref().take(d.size as usize).collect(),
        });
        Self {
            batches: batches.collect(),
            answers: plan.answers.clone(),
            rejects: plan.rejects.clone(),
            revokes: plan.revokes.clone(),
            routes: plan.routes.clone(),
            wake_us: plan.wake,
        }
    }

    /// Every request dispatched, in order.
    pub fn dispatched(&self) -> Vec<u64> {
        self.batches
            .iter()
            .flat_map(|batch| batch.requests.iter().copied())
            .collect()
    }
}
