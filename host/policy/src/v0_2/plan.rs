//! A plan in the core's types, unchecked: the core checks plans.

use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::time::Time;

use super::bindings::wit;
use crate::plan_bounds::PlanBounds;
use crate::truncate::one_line;

/// Longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 256;

/// Copies a policy's answer into the core's plan, which must be empty.
///
/// # Errors
/// A list is longer than its bound.
pub(super) fn copy(from: wit::Plan, bounds: &PlanBounds, into: &mut Plan) -> Result<(), String> {
    check(&from, bounds)?;
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
        one_line(&mut text, REASON_BYTES_MAX);
        (reason.dispatch, text)
    });
    into.reasons.extend(reasons);
    Ok(())
}

fn check(from: &wit::Plan, bounds: &PlanBounds) -> Result<(), String> {
    for (list, length, most) in [
        ("dispatches", from.dispatches.len(), bounds.requests),
        ("members", from.members.len(), bounds.requests),
        ("revokes", from.revokes.len(), bounds.revokes),
        ("rejects", from.rejects.len(), bounds.requests),
        ("answers", from.answers.len(), bounds.requests),
        ("routes", from.routes.len(), bounds.routes),
    ] {
        PlanBounds::check(list, length, most)?;
    }
    for (r, route) in from.routes.iter().enumerate() {
        let lanes = route.lanes.len();
        if lanes > bounds.lanes {
            PlanBounds::check(&format!("routes[{r}].lanes"), lanes, bounds.lanes)?;
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BOUNDS: PlanBounds = PlanBounds {
        requests: 3,
        revokes: 2,
        routes: 1,
        lanes: 2,
        bytes: 0,
    };

    fn empty() -> wit::Plan {
        wit::Plan {
            dispatches: Vec::new(),
            members: Vec::new(),
            revokes: Vec::new(),
            rejects: Vec::new(),
            answers: Vec::new(),
            routes: Vec::new(),
            wake: None,
            reasons: Vec::new(),
        }
    }

    fn lane() -> wit::Lane {
        wit::Lane {
            worker: 0,
            variant: 0,
            exit: 0,
            weight: 1.0,
            min_batch: 1,
            max_batch: 1,
            capacity: 1,
        }
    }

    fn refusal(plan: wit::Plan) -> String {
        copy(plan, &BOUNDS, &mut Plan::default()).unwrap_err()
    }

    #[test]
    fn lists_that_no_plan_for_the_window_needs_are_refused() {
        let rejects = wit::Plan {
            rejects: vec![7; 4],
            ..empty()
        };
        assert_eq!(
            refusal(rejects),
            "plan.rejects: 4 entries, at most 3 in this window"
        );
        let revokes = wit::Plan {
            revokes: vec![7; 3],
            ..empty()
        };
        assert!(refusal(revokes).starts_with("plan.revokes: 3 entries"));
        let lanes = vec![lane(); 700_000];
        let routes = wit::Plan {
            routes: vec![wit::Route { app: 0, lanes }],
            ..empty()
        };
        assert_eq!(
            refusal(routes),
            "plan.routes[0].lanes: 700000 entries, at most 2 in this window"
        );
    }

    #[test]
    fn reasons_are_cut_in_number_and_length() {
        let reason = |text: &str| wit::Reason {
            dispatch: 0,
            text: text.to_owned(),
        };
        let answer = wit::Plan {
            rejects: vec![7],
            reasons: vec![reason(&"x".repeat(300)), reason("past the decisions")],
            ..empty()
        };
        let mut plan = Plan::default();
        copy(answer, &BOUNDS, &mut plan).unwrap();
        assert_eq!(plan.reasons.len(), 1);
        assert_eq!(plan.reasons[0].1.len(), REASON_BYTES_MAX + " [cut]".len());
    }
}
