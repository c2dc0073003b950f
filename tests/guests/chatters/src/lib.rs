//! Writes a thousand log lines per window.

use guest_base::contract::{Plan, Window};
use guest_base::host::{Level, log};
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct Chatters;

impl Subject for Chatters {
    const NAME: &'static str = "chatters";

    fn schedule(_window: Window) -> Result<Plan, String> {
        for line in 0..1000 {
            log(Level::Debug, &format!("line {line}"));
        }
        Ok(empty_plan())
    }
}

guest_base::guest!(Chatters);
