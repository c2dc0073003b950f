//! A policy that is told the workload's own rates: what papers assume who let a scheduler know the
//! state of the workload.

use std::sync::{Arc, Mutex, PoisonError};

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::window::Window;

/// Arrivals per second of each app at this moment, where they are to be known; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates(Arc<Mutex<Vec<Option<f64>>>>);

/// Its windows show known rates in the place of measured ones.
pub(crate) struct Told {
    inner: Box<dyn Policy>,
    rates: Rates,
    window: Window,
}

// === impl Rates ===

impl Rates {
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

// === impl Told ===

impl Told {
    pub(crate) fn new(inner: Box<dyn Policy>, rates: Rates) -> Self {
        Self {
            inner,
            rates,
            window: Window::default(),
        }
    }
}

impl Policy for Told {
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
