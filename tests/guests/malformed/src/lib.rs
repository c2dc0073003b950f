//! Returns a plan whose members point outside its memory.

use guest_base::contract::{Plan, Window};
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct Malformed;

impl Subject for Malformed {
    const NAME: &'static str = "malformed";

    fn schedule(_window: Window) -> Result<Plan, String> {
        let beyond = std::ptr::without_provenance_mut(0xffff_fff0);
        let mut plan = empty_plan();
        // SAFETY: deliberately unsound. The bindings pass pointer and length on unread, and the
        // host refuses them before they are freed.
        plan.members = unsafe { Vec::from_raw_parts(beyond, 1024, 1024) };
        Ok(plan)
    }
}

guest_base::guest!(Malformed);
