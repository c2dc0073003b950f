//! Any policy, with its window calls timed and counted.

use std::time::Instant;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::window::Window;

use crate::telemetry::{Histogram, Registry, names};

/// A policy whose window calls go into metrics.
pub struct Observed {
    inner: Box<dyn Policy>,
    seconds: Histogram,
    /// None for a policy whose windows are no load of the pool.
    requests: Option<Histogram>,
}

// === impl Observed ===

impl Observed {
    /// Times `inner` under the names of pool and policy: all versions of a policy share one series.
    pub fn new(inner: Box<dyn Policy>, pool: &str, registry: &Registry) -> Self {
        let labels = [
            ("pool", pool),
            ("policy", inner.description().name.as_str()),
        ];
        Self {
            seconds: registry.histogram(names::WINDOW_TIME, labels),
            requests: Some(registry.histogram(names::WINDOW_REQUESTS, [("pool", pool)])),
            inner,
        }
    }

    /// Times a policy whose plans are not applied: its windows do not count as load of the pool.
    pub fn shadow(inner: Box<dyn Policy>, pool: &str, registry: &Registry) -> Self {
        let labels = [
            ("pool", pool),
            ("policy", inner.description().name.as_str()),
        ];
        Self {
            seconds: registry.histogram(names::SHADOW_WINDOW_TIME, labels),
            requests: None,
            inner,
        }
    }
}

impl Policy for Observed {
    fn description(&self) -> &Description {
        self.inner.description()
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.inner.configure(catalog)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let began = Instant::now();
        let result = self.inner.schedule(window, plan);
        self.seconds.record(began.elapsed().as_secs_f64());
        if let Some(requests) = &self.requests {
            requests.record(window.len() as f64);
        }
        result
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        self.inner.save()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        self.inner.restore(state)
    }
}
