//! The one trait that a policy implements.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::plan::PlanBuilder;
use crate::window::Window;

pub use raw::{Description, Events, WindowFields};

/// A scheduling policy.
///
/// Its plans may depend on nothing but the catalog, the settings, the windows so far and the host's
/// random numbers, so that every recording can be replayed.
pub trait Policy: Sized {
    /// The policy's name, the events that open its windows, and the fields that they show.
    fn describe() -> Description;

    /// Makes the policy for a catalog; called again, on a fresh value, when the catalog
    /// changes. `settings` is the policy's own JSON, see [`crate::settings::parse`].
    ///
    /// # Errors
    /// The policy cannot work with the catalog or the settings; the text names the field.
    fn configure(catalog: &Catalog, settings: &str) -> Result<Self, String>;

    /// Decides. A request that the plan does not mention stays pending.
    ///
    /// # Errors
    /// The host's fallback serves this window, and a fault is counted.
    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String>;

    /// Whether the latencies of `window.catalog()` are multiplied by the slowdown that the window
    /// shows. Off by default: a profiled latency was measured, and a policy that compares
    /// figures of different windows would see them move. Latencies that `configure` has copied stay
    /// as profiled.
    fn follows_slowdown(&self) -> bool {
        false
    }

    /// State for the next version, or for this one after a change of catalog.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes the state of the previous version.
    ///
    /// # Errors
    /// The state is not usable; the policy starts fresh.
    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
}

// === impl Description ===

impl Description {
    /// A policy with windows on arrivals and whenever a worker is idle, without optional fields. Pass `env!("CARGO_PKG_NAME")` and
    /// `env!("CARGO_PKG_VERSION")`.
    pub fn new(name: &str, version: &str, summary: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            every: None,
            when_empty: false,
            on: Events::ARRIVAL | Events::WORKER_IDLE,
            wants: WindowFields::empty(),
        }
    }

    /// Also opens a window periodically.
    pub fn every_us(mut self, period_us: u64) -> Self {
        self.every = Some(period_us);
        self
    }

    /// Opens the periodic window even when nothing is pending and nothing has ended.
    pub fn when_empty(mut self) -> Self {
        self.when_empty = true;
        self
    }

    /// The events that open a window, instead of the default.
    pub fn on(mut self, events: Events) -> Self {
        self.on = events;
        self
    }

    /// The fields that windows show. With `WindowFields::CHANGED_WORKERS` only the workers that changed
    /// cross to the policy, and [`Window`] shows all of them as without it.
    pub fn wants(mut self, fields: WindowFields) -> Self {
        self.wants = fields;
        self
    }
}
