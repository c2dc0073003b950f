//! Returns a pointer outside its memory where the plan's members should be.

use guest_base::contract::{Plan, Window};
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct Malformed;

impl Subject for Malformed {
    const NAME: &'static str = "malformed";

    fn schedule(_window: Window) -> Result<Plan, String> {
        let beyond = std::ptr::without_provenance_mut(0xffff_fff0);
        let mut plan = empty_plan();
        // SAFETY: none, that is the point; the bindings hand pointer and length on unread,
        // and the host refuses them before anything frees them.
        plan.members = unsafe { Vec::from_raw_parts(beyond, 1024, 1024) };
        Ok(plan)
    }
}

guest_base::guest!(Malformed);
