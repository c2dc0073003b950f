//! The decisions of a policy for one window. Its numbers may name anything: a plan is untrusted
//! until it is checked.
//!
//! The rules stand once, in `rules`, and are asked about two kinds of moment:
//! - [`CheckedPlan`]: the live state of a scheduler, which applies the plan;
//! - [`check_window`]: a recorded window and its catalog, for tests, trials, shadows and replays.

mod bounds;
mod checked;
mod error;
mod lanes;
mod named;
mod rooms;
mod rules;
mod shown;
mod state;

pub use checked::CheckedPlan;
pub(crate) use checked::LiveState;
pub use error::PlanError;
pub use lanes::{LANE_CAPACITY_MAX, WEIGHT_TOLERANCE};
pub(crate) use rules::CheckBuffers;
pub use shown::check_window;

use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use crate::time::{Micros, Time};

/// Room that a buffer keeps for the next window, in entries: enough for the default
/// `pending_max`. The history keeps the buffers of many windows.
const KEPT_ENTRIES: usize = 4_096;

/// Decisions of one window. A request that the plan does not mention stays pending.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Batches for workers.
    pub dispatches: Vec<Dispatch>,
    /// Requests of the dispatches, one after the other.
    pub members: Vec<RequestId>,
    /// Queued, not started batches to take back.
    pub revokes: Vec<BatchId>,
    /// Requests to refuse.
    pub rejects: Vec<RequestId>,
    /// Requests to answer from their evidence (short-circuit).
    pub answers: Vec<RequestId>,
    /// Where arrivals go from now on.
    pub routes: Vec<Route>,
    /// Open a window at this time.
    pub wake: Option<Time>,
    /// The policy's own words, by position in `dispatches`, then `rejects`, then `answers`, as
    /// if the three were one list.
    pub reasons: Vec<(u32, String)>,
}

/// One batch for one worker; its requests are the next `size` members of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The worker to run on.
    pub worker: WorkerId,
    /// The variant to run.
    pub variant: VariantId,
    /// 0, or the stages that its requests have run already.
    pub from_stage: u32,
    /// One past the last stage to run.
    pub to_stage: u32,
    /// The exit whose head answers; none parks the requests after `to_stage`.
    pub exit: Option<ExitId>,
    /// Position in the worker's queue, 0 = head; past the end = the end.
    pub place: u32,
    /// Requests in the batch.
    pub size: u32,
}

/// A distribution of an app's arrivals over lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The app whose arrivals are routed.
    pub app: AppId,
    /// The lanes; empty: arrivals are pending again.
    pub lanes: Vec<Lane>,
}

/// One lane of a route: a worker, a variant and an exit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The worker it leads to.
    pub worker: WorkerId,
    /// The variant that runs there.
    pub variant: VariantId,
    /// The exit that answers.
    pub exit: ExitId,
    /// Share of the arrivals; weights sum to 1.
    pub weight: f64,
    /// Smallest batch that starts.
    pub min_batch: u32,
    /// Largest batch that starts.
    pub max_batch: u32,
    /// Requests that may wait; one more is rejected.
    pub capacity: u32,
}

// === impl Dispatch ===

impl Dispatch {
    /// Profiled latency on its worker; none if there is no such worker or batch.
    pub fn profiled(&self, catalog: &Catalog) -> Option<Micros> {
        let kind = catalog.worker(self.worker)?.kind;
        let (from, to) = (self.from_stage, self.to_stage);
        let profile = &catalog.profile;
        profile.latency(kind, self.variant, from, to, self.exit, self.size)
    }
}

// === impl Plan ===

impl Plan {
    /// Empties the plan and keeps the buffers.
    pub fn clear(&mut self) {
        self.dispatches.clear();
        self.members.clear();
        self.revokes.clear();
        self.rejects.clear();
        self.answers.clear();
        self.routes.clear();
        self.wake = None;
        self.reasons.clear();
    }

    /// Gives back the memory of lists that were much longer once.
    pub(crate) fn trim(&mut self) {
        trim(&mut self.dispatches);
        trim(&mut self.members);
        trim(&mut self.revokes);
        trim(&mut self.rejects);
        trim(&mut self.answers);
        trim(&mut self.routes);
        trim(&mut self.reasons);
    }

    /// Adds a batch.
    pub fn dispatch(&mut self, dispatch: Dispatch, members: impl IntoIterator<Item = RequestId>) {
        let before = self.members.len();
        self.members.extend(members);
        self.dispatches.push(Dispatch {
            size: (self.members.len() - before) as u32,
            ..dispatch
        });
    }

    /// The dispatches with their members. Members missing at the end make short batches,
    /// which the check refuses.
    pub fn batches(&self) -> impl Iterator<Item = (&Dispatch, &[RequestId])> {
        let mut rest = self.members.as_slice();
        self.dispatches.iter().map(move |dispatch| {
            let (members, after) = rest.split_at(rest.len().min(dispatch.size as usize));
            rest = after;
            (dispatch, members)
        })
    }
}

/// Shrinks a kept buffer that has room for more than [`KEPT_ENTRIES`] beyond its contents.
pub(crate) fn trim<T>(buffer: &mut Vec<T>) {
    let most = buffer.len() + KEPT_ENTRIES;
    if buffer.capacity() > most {
        buffer.shrink_to(most);
    }
}
