//! The lengths of a plan's lists, checked before any entry is looked at: a plan is untrusted, and
//! the check must not take longer than the state is large.

use super::state::PlanState;
use super::{Plan, PlanError};

/// Entries that are looked at in any case, so that an error names the entry.
const LOOKED_AT: usize = 64;

/// No list is longer than the entities that it could name.
///
/// # Errors
/// The first list that is too long.
pub(super) fn check<S: PlanState>(plan: &Plan, state: &S) -> Result<(), PlanError> {
    // Only a plan that takes batches back can name their requests.
    let (batches, queued) = match plan.revokes.is_empty() {
        true => (0, 0),
        false => (state.queued_batches(), state.queued_requests()),
    };
    let requests = state.pending() + queued;
    at_most("revokes", plan.revokes.len(), batches)?;
    at_most("members", plan.members.len(), requests)?;
    at_most("rejects", plan.rejects.len(), requests)?;
    at_most("answers", plan.answers.len(), requests)?;
    // A batch has at least one request.
    at_most("dispatches", plan.dispatches.len(), plan.members.len())?;
    at_most("routes", plan.routes.len(), state.catalog().apps.len())
}

pub(super) fn at_most(list: &str, len: usize, most: usize) -> Result<(), PlanError> {
    if len <= most.max(LOOKED_AT) {
        return Ok(());
    }
    Err(PlanError::TooLong {
        list: list.to_owned(),
        len,
        most,
    })
}
