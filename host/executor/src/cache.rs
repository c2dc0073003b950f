//! The models a worker holds, under its memory budget.

use std::sync::Arc;
use std::time::Instant;

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;

use crate::error::CacheError;
use crate::source::{LoadedModel, Weights};

mod residents;

pub(crate) use residents::Residents;

/// Loads on demand, evicts the least recently used, never what is pinned or in use.
pub struct ModelCache {
    weights: Arc<Weights>,
    device: Device,
    residents: Residents<Held>,
}

/// A worker's own hold on weights that other workers may share: its count says whether *this*
/// worker uses them, which the shared count cannot.
struct Held(Arc<LoadedModel>);

/// A model that stays resident for as long as this exists.
pub struct InUse(Arc<Held>);

// === impl InUse ===

impl std::ops::Deref for InUse {
    type Target = LoadedModel;
    fn deref(&self) -> &LoadedModel {
        &self.0.0
    }
}

// === impl ModelCache ===

impl ModelCache {
    /// An empty cache of `budget_bytes` on `device`.
    pub fn new(weights: Arc<Weights>, device: Device, budget_bytes: u64) -> Self {
        Self {
            weights,
            device,
            residents: Residents::new(budget_bytes),
        }
    }

    /// Never evicts this variant from now on; it is not loaded by this.
    pub fn pin(&mut self, variant: VariantId) {
        self.residents.pin(variant);
    }

    /// The variant, and the time its load took: zero when it was resident.
    ///
    /// `reserved_bytes` of the budget are taken by something else than models.
    ///
    /// # Errors
    /// It does not fit, now or ever, or cannot be read.
    pub fn acquire(
        &mut self,
        variant: VariantId,
        reserved_bytes: u64,
    ) -> Result<(InUse, Micros), CacheError> {
        if let Some(held) = self.residents.touch(variant) {
            return Ok((InUse(held), Micros::ZERO));
        }
        let start = Instant::now();
        let expected_bytes = self.weights.memory_bytes(variant)?;
        self.make_room(variant, expected_bytes, reserved_bytes)?;
        let model = self.weights.load(variant, &self.device)?;
        let bytes = model.bytes;
        if bytes > expected_bytes {
            // The source promised less than it took.
            self.make_room(variant, bytes, reserved_bytes)?;
        }
        let held = Arc::new(Held(model));
        self.residents.insert(variant, bytes, Arc::clone(&held));
        let load = Micros::from(start.elapsed());
        tracing::debug!(variant = held.0.name, bytes, load_us = load.0, "loaded");
        Ok((InUse(held), load))
    }

    /// Name of a variant, resident or not, for messages.
    pub fn name(&self, variant: VariantId) -> String {
        self.weights.name(variant)
    }

    /// Where the models are.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The variants held, in the order of their ids.
    pub fn variants(&self) -> Vec<VariantId> {
        self.residents.variants()
    }

    /// Budget that no model uses, in bytes.
    pub fn free_bytes(&self) -> u64 {
        self.residents
            .budget_bytes()
            .saturating_sub(self.residents.resident_bytes())
    }

    fn make_room(
        &mut self,
        variant: VariantId,
        bytes: u64,
        reserved_bytes: u64,
    ) -> Result<(), CacheError> {
        let budget_bytes = self.residents.budget_bytes();
        if bytes > budget_bytes {
            return Err(CacheError::TooLarge {
                variant: self.name(variant),
                bytes,
                budget_bytes,
            });
        }
        let evicted = self
            .residents
            .make_room(bytes, reserved_bytes)
            .map_err(|no_room| CacheError::NoRoom {
                variant: self.name(variant),
                bytes,
                free_bytes: no_room.free_bytes,
            })?;
        for gone in evicted {
            tracing::debug!(variant = self.name(gone), "evicted");
        }
        Ok(())
    }
}
