//! Asks for the workers that changed and takes their rows for those of all workers: it rejects the
//! oldest request of a window that shows no idle worker.

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

/// The guest.
pub struct ForgetsWorkers;

impl Guest for ForgetsWorkers {
    fn describe() -> Description {
        Description {
            name: "forgets-workers".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "a guest for tests".to_owned(),
            every: None,
            when_empty: false,
            on: Events::ARRIVAL,
            wants: WindowFields::CHANGED_WORKERS,
        }
    }

    fn configure(_catalog: Catalog, _settings: String) -> Result<(), String> {
        Ok(())
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        let is_idle = window.workers.running_variant.contains(&u32::MAX);
        let ids = window.requests.map(|requests| requests.id);
        let oldest = ids.into_iter().flatten().take(usize::from(!is_idle));
        Ok(Plan {
            dispatches: Vec::new(),
            members: Vec::new(),
            revokes: Vec::new(),
            rejects: oldest.collect(),
            answers: Vec::new(),
            routes: Vec::new(),
            wake: None,
            reasons: Vec::new(),
        })
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
bindings::export!(ForgetsWorkers with_types_in bindings);
