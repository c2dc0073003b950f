//! Its state is the catalog and the last window of contract 0.2, as text.

use std::cell::RefCell;

use bindings::exports::switchyard::policy::scheduling::{
    Catalog, Description, Events, Guest, Plan, Window, WindowFields,
};

#[allow(missing_docs, clippy::all)] // Generated; the documentation is in the WIT.
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/0.2",
        world: "policy",
    });
}

pub use bindings::exports;

thread_local! {
    static SHOWN: RefCell<[String; 2]> = const { RefCell::new([String::new(), String::new()]) };
}

/// The guest.
pub struct Shows;

impl Guest for Shows {
    fn describe() -> Description {
        Description {
            name: "shows".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "a guest for tests".to_owned(),
            every: None,
            when_empty: false,
            on: Events::ARRIVAL,
            wants: WindowFields::all() - WindowFields::CHANGED_WORKERS,
        }
    }

    fn configure(catalog: Catalog, _settings: String) -> Result<(), String> {
        SHOWN.with_borrow_mut(|shown| shown[0] = format!("{catalog:#?}"));
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        SHOWN.with_borrow_mut(|shown| shown[1] = format!("{window:#?}"));
        Ok(Plan {
            dispatches: Vec::new(),
            members: Vec::new(),
            revokes: Vec::new(),
            rejects: Vec::new(),
            answers: Vec::new(),
            routes: Vec::new(),
            wake: None,
            reasons: Vec::new(),
        })
    }

    fn save() -> Vec<u8> {
        SHOWN.with_borrow(|shown| shown.join("\n").into_bytes())
    }

    fn restore(_state: Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

// Names such as `a:b/c@1.0.0#d` are no symbols for a native linker.
#[cfg(target_family = "wasm")]
bindings::export!(Shows with_types_in bindings);
