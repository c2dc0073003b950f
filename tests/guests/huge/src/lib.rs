//! Rejects a million requests that do not exist.

use guest_base::contract::{Plan, Window};
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct Huge;

impl Subject for Huge {
    const NAME: &'static str = "huge";

    fn schedule(_window: Window) -> Result<Plan, String> {
        let mut plan = empty_plan();
        plan.rejects = vec![1; 1_000_000];
        Ok(plan)
    }
}

guest_base::guest!(Huge);
