//! How two plans for one window differ, request by request.

use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::Plan;
use switchyard_core::time::Time;

use super::outlook::{Judge, Outlook, Worth};
use crate::reasons;

/// A window on which the two do not agree.
pub(crate) struct Difference {
    pub(crate) window: u64,
    pub(crate) now: Time,
    pub(crate) pending: usize,
    /// Who decided.
    pub(crate) by: String,
    /// Requests that fare otherwise.
    pub(crate) requests: Vec<RequestDifference>,
    /// What else is not the same.
    pub(crate) besides: Vec<&'static str>,
    /// Of what was done.
    pub(crate) done: Worth,
    /// Of what the other policy would have done.
    pub(crate) proposed: Worth,
    /// Why the policy's plan is none.
    pub(crate) failure: Option<String>,
}

/// A request that fares otherwise.
pub(crate) struct RequestDifference {
    pub(crate) id: RequestId,
    pub(crate) app: AppId,
    pub(crate) done: Outlook,
    pub(crate) proposed: Outlook,
    /// Why, in the words of either policy.
    pub(crate) done_why: Option<String>,
    pub(crate) proposed_why: Option<String>,
}

// === impl Difference ===

impl Difference {
    /// Both do the same, and only want to be asked again at other times.
    pub(crate) fn is_wake_only(&self) -> bool {
        self.requests.is_empty() && self.besides == ["wake"] && self.failure.is_none()
    }
}

/// Whether both say the same, whatever reasons they give.
pub(crate) fn agree(one: &Plan, other: &Plan) -> bool {
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
pub(crate) fn difference(
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
