//! Raw bindings of the policy contract, and default calls.
//!
//! A guest implements [`Subject`] and invokes `guest_base::guest!(Type)`.

use std::marker::PhantomData;

#[allow(missing_docs, clippy::all)] // Generated; the documentation is in the WIT.
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/0.1",
        world: "policy",
        pub_export_macro: true,
        default_bindings_module: "guest_base",
        runtime_path: "wit_bindgen::rt",
    });
}

#[doc(hidden)]
pub use bindings::export;
pub use bindings::exports;
pub use bindings::exports::switchyard::policy::scheduling as contract;
pub use bindings::switchyard::policy::host;

use contract::{Catalog, Description, Dispatch, Events, Plan, Sights, Window};

/// The five calls. All but `schedule` have defaults.
pub trait Subject {
    /// Name in the description.
    const NAME: &'static str;

    /// See the WIT.
    fn describe() -> Description {
        Description {
            name: Self::NAME.to_owned(),
            version: "1.0.0".to_owned(),
            summary: "a guest for tests".to_owned(),
            every: None,
            when_empty: false,
            on: Events::ARRIVAL,
            wants: Sights::empty(),
        }
    }

    /// See the WIT.
    ///
    /// # Errors
    /// Those of the guest.
    fn configure(_catalog: Catalog, _settings: String) -> Result<(), String> {
        Ok(())
    }

    /// See the WIT.
    ///
    /// # Errors
    /// Those of the guest.
    fn schedule(window: Window) -> Result<Plan, String>;

    /// See the WIT.
    fn save() -> Vec<u8> {
        Vec::new()
    }

    /// See the WIT.
    ///
    /// # Errors
    /// Those of the guest.
    fn restore(_state: Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

/// The component's export, which calls a [`Subject`].
pub struct GuestExport<T>(PhantomData<T>);

/// Exports a type that implements [`Subject`].
#[macro_export]
macro_rules! guest {
    ($subject:ty) => {
        /// The component's export.
        pub type Exported = $crate::GuestExport<$subject>;
        // Names such as `a:b/c@1.0.0#d` are no symbols for a native linker.
        #[cfg(target_family = "wasm")]
        $crate::export!(Exported with_types_in $crate);
    };
}

/// A plan that decides nothing.
pub fn empty_plan() -> Plan {
    Plan {
        dispatches: Vec::new(),
        members: Vec::new(),
        revokes: Vec::new(),
        rejects: Vec::new(),
        answers: Vec::new(),
        routes: Vec::new(),
        wake: None,
        reasons: Vec::new(),
    }
}

/// A dispatch of one request that runs the only stage of variant 0 on a worker.
pub fn alone(worker: u32) -> Dispatch {
    Dispatch {
        worker,
        variant: 0,
        from_stage: 0,
        to_stage: 1,
        exit: Some(0),
        place: u32::MAX,
        size: 1,
    }
}

// === impl GuestExport ===

impl<T: Subject> contract::Guest for GuestExport<T> {
    fn describe() -> Description {
        T::describe()
    }

    fn configure(catalog: Catalog, settings: String) -> Result<(), String> {
        T::configure(catalog, settings)
    }

    fn schedule(window: Window) -> Result<Plan, String> {
        T::schedule(window)
    }

    fn save() -> Vec<u8> {
        T::save()
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        T::restore(state)
    }
}
