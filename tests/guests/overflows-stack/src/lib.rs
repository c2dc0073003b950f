//! Recurses in `schedule` without end.

use guest_base::contract::{Plan, Window};
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct OverflowsStack;

impl Subject for OverflowsStack {
    const NAME: &'static str = "overflows-stack";

    fn schedule(window: Window) -> Result<Plan, String> {
        let mut plan = empty_plan();
        plan.wake = Some(depth(window.now));
        Ok(plan)
    }
}

// The addition after the call keeps the compiler from making a loop of it.
#[allow(unconditional_recursion)]
#[inline(never)]
fn depth(n: u64) -> u64 {
    depth(std::hint::black_box(n) + 1).wrapping_add(n)
}

guest_base::guest!(OverflowsStack);
