//! The weights of a pool, on each device of its workers.

use std::sync::Arc;

use switchyard_core::ids::VariantId;
use switchyard_executor::{Device, LoadError, LoadedModel, Weights};

/// The weights of a pool, on each device of its workers.
#[derive(Clone)]
pub struct PoolWeights {
    weights: Arc<Weights>,
    /// One per worker, in the catalog's order.
    devices: Vec<Device>,
}

// === impl PoolWeights ===

impl PoolWeights {
    /// Weights of workers that compute on these devices, in the catalog's order.
    pub fn new(weights: Arc<Weights>, devices: Vec<Device>) -> Self {
        Self { weights, devices }
    }

    /// The weights, for another pool to share.
    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Reads a variant anew for each device, and returns the model that each worker serves from then
    /// on.
    ///
    /// # Errors
    /// As [`Weights::renew`]; then the old ones serve on everywhere.
    pub fn renew(&self, variant: VariantId) -> Result<Vec<Arc<LoadedModel>>, LoadError> {
        self.weights.renew(variant, &self.devices)
    }

    /// A load that has failed may be tried again now.
    pub(super) fn forgive(&self, variant: VariantId) {
        for device in &self.devices {
            self.weights.forgive(variant, device);
        }
    }

    /// Weights that are kept although no worker holds them may go.
    pub(super) fn forget(&self, variant: VariantId) {
        for device in &self.devices {
            self.weights.forget(variant, device);
        }
    }
}
