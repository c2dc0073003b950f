//! How two plans for one window differ, request by request.

use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::Plan;
use switchyard_core::time::Time;

use super::outlook::{Judge, Outlook, Worth};
use crate::reasons;

/// A window on which the two do not agree.
pub struct Difference {
    /// Id of the window.
    pub window: u64,
    /// When it was opened.
    pub now: Time,
    /// Requests that were pending.
    pub pending: usize,
    /// Who decided.
    pub by: String,
    /// Requests that fare otherwise.
    pub requests: Vec<RequestDifference>,
    /// What else is not the same.
    pub besides: Vec<&'static str>,
    /// Of what was done.
    pub done: Worth,
    /// Of what the other policy would have done.
    pub proposed: Worth,
    /// Why the policy's plan is none.
    pub failure: Option<String>,
}

/// A request that fares otherwise.
pub struct RequestDifference {
    /// The request.
    pub id: RequestId,
    /// Its app.
    pub app: AppId,
    /// Its outlook under the plan carried out.
    pub done: Outlook,
    /// Its outlook under the policy's plan.
    pub proposed: Outlook,
    /// The reason given in the plan carried out.
    pub done_why: Option<String>,
    /// The reason given in the policy's plan.
    pub proposed_why: Option<String>,
}

// === impl Difference ===

impl Difference {
    /// Both do the same, and only want to be asked again at other times.
    pub fn is_wake_only(&self) -> bool {
        self.requests.is_empty() && self.besides == ["wake"] && self.failure.is_none()
    }
}

/// Whether both say the same, whatever reasons they give.
pub(super) fn agree(one: &Plan, other: &Plan) -> bool {
    differing_parts(one, other).is_empty()
}

fn differing_parts(one: &Plan, other: &Plan) -> Vec<&'static str> {
    let parts = [
        ("dispatches", one.dispatches == other.dispatches),
        ("members", one.members == other.members),
        ("revokes", one.revokes == other.revokes),
        ("rejects", one.rejects == other.rejects),
        ("answers", one.answers == other.answers),
        ("routes", one.routes == other.routes),
        ("wake", one.wake == other.wake),
    ];
    let differ = parts.into_iter().filter(|(_, same)| !same);
    differ.map(|(part, _)| part).collect()
}

/// Looks at both plans; `proposed` is `None` where the policy gave none that could be applied.
pub(super) fn difference(
    decision: &Decision,
    judge: &Judge<'_>,
    proposed: Result<&Plan, String>,
) -> Difference {
    let Decision {
        window, plan, by, ..
    } = decision;
    let nothing = Plan::default();
    let (planned, failure) = match proposed {
        Ok(planned) => (planned, None),
        Err(reason) => (&nothing, Some(reason)),
    };
    let (then, now) = (judge.outlooks(plan), judge.outlooks(planned));
    let ids = window.requests.id.iter().zip(&window.requests.app);
    let requests = ids
        .zip(then.iter().zip(&now))
        .filter(|(_, (then, now))| then != now)
        .map(|((&id, &app), (&done, &proposed))| RequestDifference {
            id: RequestId(id),
            app: AppId(app),
            done,
            proposed,
            done_why: reasons::of_request(plan, RequestId(id)).map(str::to_owned),
            proposed_why: reasons::of_request(planned, RequestId(id)).map(str::to_owned),
        });
    let requests: Vec<_> = requests.collect();
    let mut besides = differing_parts(plan, planned);
    if !requests.is_empty() {
        // These are what the requests show.
        besides.retain(|part| ["revokes", "routes", "wake"].contains(part));
    }
    Difference {
        window: window.id,
        now: window.now,
        pending: window.len(),
        by: by.to_string(),
        requests,
        besides,
        done: Worth::of(&then),
        proposed: Worth::of(&now),
        failure,
    }
}
