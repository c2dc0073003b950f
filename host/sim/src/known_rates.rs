//! Windows with the workload's own rates, for papers that assume that the scheduler knows the state
//! of the workload.

use std::sync::{Arc, Mutex, PoisonError};

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::window::Window;

/// Arrivals per second of each app now, if they are known; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRates(Arc<Mutex<Vec<Option<f64>>>>);

/// A policy whose windows show known rates instead of measured ones.
pub(crate) struct RateInformed {
    inner: Box<dyn Policy>,
    rates: KnownRates,
    window: Window,
}

// === impl KnownRates ===

impl KnownRates {
    pub(crate) fn set(&self, rates: &[Option<f64>]) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.clear();
        held.extend_from_slice(rates);
    }

    fn show(&self, shown: &mut [f64]) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (shown, known) in shown.iter_mut().zip(held.iter()) {
            *shown = known.unwrap_or(*shown);
        }
    }
}

// === impl RateInformed ===

impl RateInformed {
    pub(crate) fn new(inner: Box<dyn Policy>, rates: KnownRates) -> Self {
        Self {
            inner,
            rates,
            window: Window::default(),
        }
    }
}

impl Policy for RateInformed {
    fn description(&self) -> &Description {
        self.inner.description()
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.inner.configure(catalog)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.window.clone_from(window);
        self.rates.show(&mut self.window.arrival_rate);
        self.inner.schedule(&self.window, plan)
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        self.inner.save()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        self.inner.restore(state)
    }
}
