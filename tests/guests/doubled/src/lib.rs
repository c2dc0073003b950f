//! Puts the first request into two dispatches.

use guest_base::contract::{Plan, Window};
use guest_base::{Subject, alone, empty_plan};

/// The guest.
pub struct Doubled;

impl Subject for Doubled {
    const NAME: &'static str = "doubled";

    fn schedule(window: Window) -> Result<Plan, String> {
        let mut plan = empty_plan();
        if let Some(first) = window.requests.id.first() {
            plan.members = vec![*first; 2];
            plan.dispatches = vec![alone(0); 2];
        }
        Ok(plan)
    }
}

guest_base::guest!(Doubled);
