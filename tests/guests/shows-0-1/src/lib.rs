//! Its state is the catalog and the last window of contract 0.1, as text.

use std::cell::RefCell;

use guest_base::contract::{Catalog, Description, Events, Plan, Sights, Window};
use guest_base::{Subject, empty_plan};

thread_local! {
    static SHOWN: RefCell<[String; 2]> = const { RefCell::new([String::new(), String::new()]) };
}

/// The guest.
pub struct Shows;

impl Subject for Shows {
    const NAME: &'static str = "shows-0-1";

    fn describe() -> Description {
        Description {
            name: Self::NAME.to_owned(),
            version: "1.0.0".to_owned(),
            summary: "a guest for tests".to_owned(),
            every: None,
            when_empty: false,
            on: Events::ARRIVAL,
            wants: Sights::all(),
        }
    }

    fn configure(catalog: Catalog, _settings: String) -> Result<(), String> {
        SHOWN.with_borrow_mut(|shown| shown[0] = format!("{catalog:#?}"));
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        SHOWN.with_borrow_mut(|shown| shown[1] = format!("{window:#?}"));
        Ok(empty_plan())
    }

    fn save() -> Vec<u8> {
        SHOWN.with_borrow(|shown| shown.join("\n").into_bytes())
    }
}

guest_base::guest!(Shows);
