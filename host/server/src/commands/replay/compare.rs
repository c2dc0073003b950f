//! How two plans for one window differ, request by request.

use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::Plan;
use switchyard_core::time::Time;

use super::outlook::{Judge, Outlook, Worth};

/// A window on which the two do not agree.
pub(super) struct Difference {
    /// The run in the recording, from 1, and the window in it.
    pub(super) run: u64,
    pub(super) window: u64,
    pub(super) now: Time,
    pub(super) pending: usize,
    /// Who decided when it was recorded.
    pub(super) by: String,
    /// Requests that fare otherwise.
    pub(super) requests: Vec<RequestDifference>,
    /// What else is not the same.
    pub(super) besides: Vec<&'static str>,
    pub(super) recorded: Worth,
    pub(super) replayed: Worth,
    /// Why the policy's plan is none.
    pub(super) failure: Option<String>,
}

/// A request that fares otherwise.
pub(super) struct RequestDifference {
    pub(super) id: RequestId,
    pub(super) app: AppId,
    pub(super) recorded: Outlook,
    pub(super) replayed: Outlook,
}

// === impl Difference ===

impl Difference {
    /// Both do the same, and only want to be asked again at other times.
    pub(super) fn is_wake_only(&self) -> bool {
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

/// Looks at both plans; `replayed` is `None` where the policy gave none that could be applied.
pub(super) fn difference(
    run: u64,
    decision: &Decision,
    judge: &Judge<'_>,
    replayed: Result<&Plan, String>,
) -> Difference {
    let Decision {
        window, plan, by, ..
    } = decision;
    let nothing = Plan::default();
    let (planned, failure) = match replayed {
        Ok(planned) => (planned, None),
        Err(reason) => (&nothing, Some(reason)),
    };
    let (then, now) = (judge.outlooks(plan), judge.outlooks(planned));
    let ids = window.requests.id.iter().zip(&window.requests.app);
    let requests = ids
        .zip(then.iter().zip(&now))
        .filter(|(_, (then, now))| then != now)
        .map(|((&id, &app), (&recorded, &replayed))| RequestDifference {
            id: RequestId(id),
            app: AppId(app),
            recorded,
            replayed,
        });
    let requests: Vec<_> = requests.collect();
    let mut besides = differing_parts(plan, planned);
    if !requests.is_empty() {
        // These are what the requests show.
        besides.retain(|part| ["revokes", "routes", "wake"].contains(part));
    }
    Difference {
        run,
        window: window.id,
        now: window.now,
        pending: window.len(),
        by: by.to_string(),
        requests,
        besides,
        recorded: Worth::of(&then),
        replayed: Worth::of(&now),
        failure,
    }
}
