//! What of an app's arrivals goes to each instance, from slot to slot.

use switchyard_sdk::{Catalog, Window};

use crate::fleet::Fleet;
use crate::overload;
use crate::settings::{Algorithm, Settings};
use crate::stationary::Phases;

/// How the shares come about.
#[derive(Debug)]
pub(crate) enum Shares {
    /// The same for all (LW, HW).
    Equal,
    /// By the phase of the workload (SA).
    Stationary(Phases),
    /// The same for all that are not overloaded (INFaaS); the length of a slot in microseconds.
    Spared(u64),
}

// === impl Shares ===

impl Shares {
    pub(crate) fn new(settings: &Settings, catalog: &Catalog, fleet: &Fleet) -> Self {
        match settings.algorithm {
            Algorithm::Sa => {
                let slo_us = catalog.app(fleet.app).slo;
                Self::Stationary(Phases::new(settings, fleet, slo_us))
            }
            Algorithm::Infaas => Self::Spared(settings.slot_us()),
            _ => Self::Equal,
        }
    }

    /// The share of each instance, for a slot that begins now.
    pub(crate) fn at(&self, window: &Window<'_>, fleet: &Fleet) -> Vec<f64> {
        match self {
            Self::Equal => vec![1.0; fleet.len()],
            Self::Stationary(phases) => phases.shares(window.arrival_rate(fleet.app)).to_vec(),
            Self::Spared(slot_us) => overload::shares(window, fleet, *slot_us),
        }
    }
}
