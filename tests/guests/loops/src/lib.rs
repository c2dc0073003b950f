//! Never returns from `schedule`.

use guest_base::Subject;
use guest_base::contract::{Plan, Window};

/// The guest.
pub struct Loops;

impl Subject for Loops {
    const NAME: &'static str = "loops";

    fn schedule(window: Window) -> Result<Plan, String> {
        let mut sum = window.id;
        loop {
            sum = std::hint::black_box(sum.wrapping_mul(31));
        }
    }
}

guest_base::guest!(Loops);
