//! Answers every window with an error.

use guest_base::Subject;
use guest_base::contract::{Plan, Window};

/// The guest.
pub struct Errs;

impl Subject for Errs {
    const NAME: &'static str = "errs";

    fn schedule(window: Window) -> Result<Plan, String> {
        Err(format!("no plan for window {}", window.id))
    }
}

guest_base::guest!(Errs);
