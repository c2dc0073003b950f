//! Never returns from `configure`.

use guest_base::contract::{Catalog, Plan, Window};
use guest_base::{Subject, empty_plan};

/// The guest.
pub struct LoopsInConfigure;

impl Subject for LoopsInConfigure {
    const NAME: &'static str = "loops-in-configure";

    fn configure(catalog: Catalog, _settings: String) -> Result<(), String> {
        let mut sum = catalog.generation;
        loop {
            sum = std::hint::black_box(sum.wrapping_mul(31));
        }
    }

    fn schedule(_window: Window) -> Result<Plan, String> {
        Ok(empty_plan())
    }
}

guest_base::guest!(LoopsInConfigure);
