//! Dispatches to a worker that does not exist.

use guest_base::contract::{Plan, Window};
use guest_base::{Subject, alone, empty_plan};

/// The guest.
pub struct UnknownWorker;

impl Subject for UnknownWorker {
    const NAME: &'static str = "unknown-worker";

    fn schedule(window: Window) -> Result<Plan, String> {
        let mut plan = empty_plan();
        plan.members.extend(window.requests.id.first());
        plan.dispatches = plan.members.iter().map(|_| alone(9999)).collect();
        Ok(plan)
    }
}

guest_base::guest!(UnknownWorker);
