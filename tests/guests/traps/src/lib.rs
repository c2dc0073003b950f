//! Executes `unreachable` in `schedule`.

use guest_base::Subject;
use guest_base::contract::{Plan, Window};

/// The guest.
pub struct Traps;

impl Subject for Traps {
    const NAME: &'static str = "traps";

    fn schedule(window: Window) -> Result<Plan, String> {
        panic!("window {} is one too many", window.id);
    }
}

guest_base::guest!(Traps);
