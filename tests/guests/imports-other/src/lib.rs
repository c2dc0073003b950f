//! Imports a network.

use bindings::acme::telemetry::network;
use bindings::exports::switchyard::policy::scheduling::{
    Catalog, Description, Events, Guest, Plan, Sights, Window,
};

#[allow(missing_docs, clippy::all)] // Generated; the documentation is in the WIT.
mod bindings {
    wit_bindgen::generate!({
        path: ["../../../wit/0.1", "wit"],
        world: "acme:telemetry/other",
        generate_all,
    });
}

pub use bindings::exports;

/// The guest.
pub struct ImportsOther;

impl Guest for ImportsOther {
    fn describe() -> Description {
        Description {
            name: "imports-other".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "a guest for tests".to_owned(),
            every: None,
            when_empty: false,
            on: Events::ARRIVAL,
            wants: Sights::empty(),
        }
    }

    fn configure(_catalog: Catalog, _settings: String) -> Result<(), String> {
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        network::send(&format!("window {}", window.id));
        Err("the window was sent".to_owned())
    }

    fn save() -> Vec<u8> {
        Vec::new()
    }

    fn restore(_state: Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

// Names such as `a:b/c@1.0.0#d` are no symbols for a native linker.
#[cfg(target_family = "wasm")]
bindings::export!(ImportsOther with_types_in bindings);
