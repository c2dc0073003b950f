//! Allocates in `schedule` until it is refused.

use guest_base::Subject;
use guest_base::contract::{Plan, Window};

/// The guest.
pub struct Allocates;

impl Subject for Allocates {
    const NAME: &'static str = "allocates";

    fn schedule(_window: Window) -> Result<Plan, String> {
        let mut hoard: Vec<Vec<u8>> = Vec::new();
        loop {
            hoard.push(std::hint::black_box(vec![1; 1 << 20]));
        }
    }
}

guest_base::guest!(Allocates);
