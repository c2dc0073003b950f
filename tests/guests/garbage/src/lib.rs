//! Plans random nonsense: ids and indices that may exist or not.

use guest_base::contract::{Dispatch, Lane, Plan, Reason, Route, Window};
use guest_base::host::random_u64;
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct Garbage;

impl Subject for Garbage {
    const NAME: &'static str = "garbage";

    fn schedule(window: Window) -> Result<Plan, String> {
        let mut plan = empty_plan();
        let ids = &window.requests.id;
        for _ in 0..below(6) {
            plan.dispatches.push(dispatch());
        }
        plan.members = (0..below(9)).map(|_| id(ids)).collect();
        plan.revokes = (0..below(3)).map(|_| random_u64()).collect();
        plan.rejects = (0..below(3)).map(|_| id(ids)).collect();
        plan.answers = (0..below(3)).map(|_| id(ids)).collect();
        plan.routes = (0..below(2)).map(|_| route()).collect();
        plan.wake = (below(2) == 0).then(random_u64);
        plan.reasons = (0..below(3)).map(|_| reason()).collect();
        Ok(plan)
    }
}

fn below(end: u64) -> u64 {
    random_u64() % end
}

/// A small index, which may exist, or a large one, which does not.
fn index() -> u32 {
    match below(4) {
        0 => random_u64() as u32,
        _ => below(3) as u32,
    }
}

fn id(ids: &[u64]) -> u64 {
    match below(3) {
        0 => random_u64(),
        _ => {
            let at = below(ids.len().max(1) as u64) as usize;
            ids.get(at).copied().unwrap_or_default()
        }
    }
}

fn dispatch() -> Dispatch {
    Dispatch {
        worker: index(),
        variant: index(),
        from_stage: index(),
        to_stage: index(),
        exit: (below(4) != 0).then(index),
        place: index(),
        size: index(),
    }
}

fn route() -> Route {
    let lane = |_| Lane {
        worker: index(),
        variant: index(),
        exit: index(),
        weight: f64::from_bits(random_u64()),
        min_batch: index(),
        max_batch: index(),
        capacity: index(),
    };
    Route {
        app: index(),
        lanes: (0..below(4)).map(lane).collect(),
    }
}

fn reason() -> Reason {
    Reason {
        dispatch: index(),
        text: format!("because of {:#x}", random_u64()),
    }
}

guest_base::guest!(Garbage);
