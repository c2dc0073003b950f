//! How two plans for one window differ, request by request.

use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::Plan;
use switchyard_core::time::Time;

use super::outlook::{Judge, Outlook, Worth};
use crate::reasons;

/// A window for which the two plans differ.
pub struct Difference {
    /// Id of the window.
    pub window: u64,
    /// Time at which it was opened.
    pub now: Time,
    /// Requests that were pending.
    pub pending: usize,
    /// The label of the policy that decided, or the fallback's.
    pub by: String,
    /// Requests whose outlooks differ.
    pub requests: Vec<RequestDifference>,
    /// The other parts of the plans that differ.
    pub besides: Vec<&'static str>,
    /// Worth of the plan that was carried out.
    pub done: Worth,
    /// Worth of the other policy's plan.
    pub proposed: Worth,
    /// The reason why the policy's plan cannot be used.
    pub failure: Option<String>,
}

/// A request whose outlooks differ.
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
    /// Whether only the wake times differ.
    pub fn is_wake_only(&self) -> bool {
        self.requests.is_empty() && self.besides == ["wake"] && self.failure.is_none()
    }
}

/// Whether both plans are the same. Their reasons do not count.
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

/// Compares both plans. `proposed` is an error if the policy's plan cannot be used.
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
        // The requests show the other parts.
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
