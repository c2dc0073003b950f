//! A plan in the core's types, unchecked: the core checks plans.

use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::time::Time;

use super::bindings::wit;
use crate::truncate::truncate;

/// Longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 256;

/// Copies a policy's answer into the core's plan, which must be empty.
pub(super) fn copy(from: wit::Plan, into: &mut Plan) {
    into.dispatches
        .extend(from.dispatches.into_iter().map(Dispatch::from));
    into.members.extend(from.members.into_iter().map(RequestId));
    into.revokes.extend(from.revokes.into_iter().map(BatchId));
    into.rejects.extend(from.rejects.into_iter().map(RequestId));
    into.answers.extend(from.answers.into_iter().map(RequestId));
    into.routes.extend(from.routes.into_iter().map(Route::from));
    into.wake = from.wake.map(Time);
    // History and recordings keep the reasons: at most one per decision.
    let decided = into.dispatches.len() + into.rejects.len() + into.answers.len();
    let reasons = from.reasons.into_iter().take(decided).map(|reason| {
        let mut text = reason.text;
        truncate(&mut text, REASON_BYTES_MAX);
        (reason.dispatch, text)
    });
    into.reasons.extend(reasons);
}

impl From<wit::Dispatch> for Dispatch {
    fn from(from: wit::Dispatch) -> Self {
        Self {
            worker: WorkerId(from.worker),
            variant: VariantId(from.variant),
            from_stage: from.from_stage,
            to_stage: from.to_stage,
            exit: from.exit.map(ExitId),
            place: from.place,
            size: from.size,
        }
    }
}

impl From<wit::Route> for Route {
    fn from(from: wit::Route) -> Self {
        Self {
            app: AppId(from.app),
            lanes: from.lanes.into_iter().map(Lane::from).collect(),
        }
    }
}

impl From<wit::Lane> for Lane {
    fn from(from: wit::Lane) -> Self {
        Self {
            worker: WorkerId(from.worker),
            variant: VariantId(from.variant),
            exit: ExitId(from.exit),
            weight: from.weight,
            min_batch: from.min_batch,
            max_batch: from.max_batch,
            capacity: from.capacity,
        }
    }
}
