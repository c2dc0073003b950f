//! The share of an app's arrivals of each instance, slot by slot.

use switchyard_sdk::{Catalog, Window};

use crate::fleet::Fleet;
use crate::overload;
use crate::settings::{RoutingAlgorithm, RoutingSettings};
use crate::stationary::PhaseShares;

/// The rule that gives the shares.
#[derive(Debug)]
pub(crate) enum Shares {
    /// Equal for all instances (LW, HW).
    Equal,
    /// By the phase of the workload (SA).
    Stationary(PhaseShares),
    /// Equal for all instances that are not overloaded (INFaaS); the length of a slot in
    /// microseconds.
    Spared(u64),
}

// === impl Shares ===

impl Shares {
    pub(crate) fn new(settings: &RoutingSettings, catalog: &Catalog, fleet: &Fleet) -> Self {
        match settings.algorithm {
            RoutingAlgorithm::Sa => {
                let slo_us = catalog.app(fleet.app).slo;
                Self::Stationary(PhaseShares::new(settings, fleet, slo_us))
            }
            RoutingAlgorithm::Infaas => Self::Spared(settings.slot_us()),
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
