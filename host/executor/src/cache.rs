//! The models a worker holds, under its memory budget.
//!
//! Two threads use a cache: the worker thread, which needs a variant for each batch, and its loader,
//! which makes variants resident ahead of time. [`switchyard_core::residents`] chooses the variants
//! that are evicted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_core::residents::{Evicted, Need, NoRoom, Residents};
use switchyard_core::time::Micros;

use crate::device::DeviceGauge;
use crate::error::CacheError;
use crate::job::{CacheCounts, Residency};
use crate::memory::MemoryGauge;
use crate::source::LoadedModel;
use crate::weights::Weights;

/// Loads on demand and ahead of time; never evicts a model that is pinned or in use.
pub struct ModelCache {
    weights: Arc<Weights>,
    device: Device,
    /// Reads the memory of a device that has its own.
    gauge: Option<Box<dyn MemoryGauge>>,
    state: Mutex<CacheState>,
}

struct CacheState {
    residents: Residents<WorkerModel>,
    /// Load times by variant, the same that policies see.
    loads: Vec<Micros>,
    /// Part of the budget that parked activations take, and the weights that only they need.
    parked_bytes: u64,
    /// The load ahead of time that is under way.
    ahead: Option<LoadAhead>,
    /// Grows with each replacement of a variant's weights.
    generations: BTreeMap<VariantId, u64>,
    version: u64,
    counts: CacheCounts,
}

/// A load ahead of time.
struct LoadAhead {
    variant: VariantId,
    /// Weights that replaced the variant's while the loader read the old ones.
    replacement: Option<Arc<LoadedModel>>,
}

/// Weights as one worker holds them. Other workers may share the model, so its count cannot tell
/// whether *this* worker uses it; the count of this can.
struct WorkerModel {
    model: Arc<LoadedModel>,
    generation: u64,
}

/// A model that stays resident for as long as this exists.
pub struct ModelInUse(Arc<WorkerModel>);

/// Weights that were replaced.
pub(crate) struct ReplacedModel {
    pub(crate) generation: u64,
    pub(crate) model: Arc<LoadedModel>,
}

// === impl ModelInUse ===

impl ModelInUse {
    /// The generation of the variant's weights: grows with each replacement.
    pub(crate) fn generation(&self) -> u64 {
        self.0.generation
    }
}

impl std::ops::Deref for ModelInUse {
    type Target = LoadedModel;
    fn deref(&self) -> &LoadedModel {
        &self.0.model
    }
}

// === impl ModelCache ===

impl ModelCache {
    /// An empty cache of `budget_bytes` on `device`.
    pub fn new(weights: Arc<Weights>, device: Device, budget_bytes: u64) -> Self {
        let state = CacheState {
            residents: Residents::new(budget_bytes),
            loads: Vec::new(),
            parked_bytes: 0,
            ahead: None,
            generations: BTreeMap::new(),
            version: 0,
            counts: CacheCounts::default(),
        };
        let gauge: Option<Box<dyn MemoryGauge>> = match device.is_cuda() {
            true => Some(Box::new(DeviceGauge(device.clone()))),
            false => None,
        };
        Self {
            weights,
            device,
            gauge,
            state: Mutex::new(state),
        }
    }

    /// Reads the device's memory with this gauge.
    #[must_use]
    pub fn with_gauge(self, gauge: Box<dyn MemoryGauge>) -> Self {
        Self {
            gauge: Some(gauge),
            ..self
        }
    }

    /// Never evicts this variant from now on. Does not load it.
    pub fn pin(&self, variant: VariantId) {
        self.state().residents.pin(variant);
    }

    /// Sets the load times by variant, which eviction weighs; without them all loads cost the same.
    pub fn set_loads(&self, loads: Vec<Micros>) {
        self.state().loads = loads;
    }

    /// Sets the part of the budget that is not for models, in bytes.
    pub(crate) fn set_parked_bytes(&self, bytes: u64) {
        self.state().parked_bytes = bytes;
    }

    /// The variant, and the time its load took: zero if it was resident. The variants of `soon` are
    /// evicted for it last.
    ///
    /// # Errors
    /// It does not fit, now or ever, or cannot be read.
    pub fn acquire(
        &self,
        variant: VariantId,
        soon: &[VariantId],
    ) -> Result<(ModelInUse, Micros), CacheError> {
        // Locked while loading: this thread has nothing else to do, and the loader must not take
        // the room. The loader holds this lock before and after it reads weights, never meanwhile.
        let mut state = self.state();
        if let Some(held) = state.residents.touch(variant) {
            state.counts.hits += 1;
            return Ok((ModelInUse(held), Micros::ZERO));
        }
        state.counts.misses += 1;
        let start = Instant::now();
        let result = self.load_now(&mut state, variant, soon);
        match &result {
            Ok(_) => state.counts.loads += 1,
            Err(error) if !error.is_repeated() => state.counts.load_errors += 1,
            Err(_) => {}
        }
        let held = result?;
        let load = Micros::from(start.elapsed()).max(Micros(1));
        tracing::debug!(variant = held.model.name, load_us = load.0, "loaded");
        Ok((ModelInUse(held), load))
    }

    /// Makes a variant resident while batches run, without evicting the first `sooner` of `soon`.
    /// The time it took; `None` if it was resident or another load took its room.
    ///
    /// # Errors
    /// It does not fit, which may show only after its load, or it cannot be read.
    pub(crate) fn load_ahead(
        &self,
        variant: VariantId,
        soon: &[VariantId],
        sooner: usize,
    ) -> Result<Option<Micros>, CacheError> {
        let start = Instant::now();
        let need = {
            let mut state = self.state();
            if state.residents.contains(variant) {
                return Ok(None);
            }
            let bytes = self.weights.memory_bytes(variant)?;
            let need = self.need(&state, variant, bytes, soon);
            let begun = state.residents.begin_load(need, sooner);
            let evicted = begun.map_err(|no_room| self.refusal(&state, need, no_room))?;
            self.evicted(&mut state, &evicted);
            state.ahead = Some(LoadAhead {
                variant,
                replacement: None,
            });
            need
        };
        let loaded = self.weights.load(variant, &self.device);
        let mut state = self.state();
        let replacement = state.ahead.take().and_then(|ahead| ahead.replacement);
        match replacement.map_or(loaded, Ok) {
            Ok(model) => {
                if !self.end_load(&mut state, need, sooner, model)? {
                    return Ok(None);
                }
                state.counts.loads += 1;
                Ok(Some(Micros::from(start.elapsed()).max(Micros(1))))
            }
            Err(error) => {
                state.residents.abandon_load(variant);
                state.counts.load_errors += u64::from(!error.repeated);
                Err(error.into())
            }
        }
    }

    /// Holds a model that was loaded ahead of time. It is counted with the bytes that it takes; the
    /// source may have expected others. False when its room was given to another variant meanwhile.
    fn end_load(
        &self,
        state: &mut CacheState,
        need: Need<'_>,
        sooner: usize,
        model: Arc<LoadedModel>,
    ) -> Result<bool, CacheError> {
        let (variant, bytes) = (need.variant, model.bytes);
        let load = state.load_of(variant);
        let held = state.hold(variant, model);
        if !state.residents.end_load(variant, load, Arc::clone(&held)) {
            return Ok(false);
        }
        if bytes == need.bytes {
            return Ok(true);
        }
        state.residents.remove(variant);
        if bytes > need.bytes {
            let need = state.booked(need, bytes);
            let begun = state.residents.begin_load(need, sooner);
            let evicted = begun.map_err(|no_room| self.refusal(state, need, no_room))?;
            state.residents.abandon_load(variant);
            self.evicted(state, &evicted);
        }
        state.residents.insert(variant, bytes, load, held);
        Ok(true)
    }

    /// The variants that a preload must not evict: all resident ones. None for a pinned variant,
    /// which may evict all that are neither pinned nor in use.
    pub(crate) fn kept_for(&self, variant: VariantId) -> Vec<VariantId> {
        let state = self.state();
        if state.residents.is_pinned(variant) {
            return Vec::new();
        }
        state.residents.variants()
    }

    /// Frees the room of a load that panicked.
    pub(crate) fn abandon(&self, variant: VariantId) {
        let mut state = self.state();
        state.ahead = None;
        state.residents.abandon_load(variant);
    }

    /// The variants of `soon` that are not resident, with their positions there.
    pub(crate) fn missing(&self, soon: &[VariantId]) -> Vec<(usize, VariantId)> {
        self.state().residents.missing(soon).collect()
    }

    /// Unloads a variant, pinned or not. A batch that uses it keeps it until its end.
    pub fn unload(&self, variant: VariantId) {
        if self.state().residents.remove(variant).is_some() {
            tracing::debug!(variant = self.name(variant), "unloaded");
        }
    }

    /// Evicts every variant that is neither pinned nor in use, and forgets that loading `wanted`
    /// failed: there may be room for it now. The number of evicted variants.
    pub(crate) fn evict_idle(&self, wanted: VariantId) -> usize {
        self.weights.forgive(wanted, &self.device);
        let mut state = self.state();
        let evicted = state.residents.evict_idle();
        self.evicted(&mut state, &evicted);
        evicted.len()
    }

    /// Holds other weights for a variant from now on. The old weights, if it was resident.
    pub(crate) fn replace(
        &self,
        variant: VariantId,
        model: &Arc<LoadedModel>,
    ) -> Option<ReplacedModel> {
        let mut state = self.state();
        *state.generations.entry(variant).or_default() += 1;
        if let Some(ahead) = state.ahead.as_mut()
            && ahead.variant == variant
        {
            ahead.replacement = Some(Arc::clone(model));
        }
        let held = state.hold(variant, Arc::clone(model));
        let before = state.residents.replace(variant, held)?;
        Some(ReplacedModel {
            generation: before.generation,
            model: Arc::clone(&before.model),
        })
    }

    /// Name of a variant, resident or not, for messages.
    pub fn name(&self, variant: VariantId) -> String {
        self.weights.name(variant)
    }

    /// The device of the models.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The resident variants, in the order of their ids.
    pub fn variants(&self) -> Vec<VariantId> {
        self.state().residents.variants()
    }

    /// The content of the memory now.
    pub fn residency(&self) -> Residency {
        let mut state = self.state();
        state.version += 1;
        Residency {
            resident: state.residents.variants(),
            free_bytes: state
                .residents
                .free_bytes()
                .saturating_sub(state.parked_bytes),
            version: state.version,
            counts: state.counts,
        }
    }

    fn load_now(
        &self,
        state: &mut CacheState,
        variant: VariantId,
        soon: &[VariantId],
    ) -> Result<Arc<WorkerModel>, CacheError> {
        let expected_bytes = self.weights.memory_bytes(variant)?;
        let need = self.need(state, variant, expected_bytes, soon);
        self.make_room(state, need)?;
        let model = self.weights.load(variant, &self.device)?;
        let bytes = model.bytes;
        if bytes > expected_bytes {
            // It takes more than the source expected.
            let need = state.booked(need, bytes);
            self.make_room(state, need)?;
        }
        let load = state.load_of(variant);
        let held = state.hold(variant, model);
        state
            .residents
            .insert(variant, bytes, load, Arc::clone(&held));
        Ok(held)
    }

    fn make_room(&self, state: &mut CacheState, need: Need<'_>) -> Result<(), CacheError> {
        match state.residents.make_room(need) {
            Ok(evicted) => {
                self.evicted(state, &evicted);
                Ok(())
            }
            Err(no_room) => Err(self.refusal(state, need, no_room)),
        }
    }

    fn need<'a>(
        &self,
        state: &CacheState,
        variant: VariantId,
        bytes: u64,
        soon: &'a [VariantId],
    ) -> Need<'a> {
        // The driver's answer takes time, so it is asked per load, not per batch.
        let memory = self.gauge.as_ref().and_then(|gauge| gauge.read());
        let unused = state.residents.free_bytes();
        let unused = unused.saturating_sub(state.parked_bytes);
        Need {
            variant,
            bytes,
            parked_bytes: state.parked_bytes + memory.map_or(0, |memory| memory.shortfall(unused)),
            soon,
        }
    }

    fn refusal(&self, state: &CacheState, need: Need<'_>, no_room: NoRoom) -> CacheError {
        let (variant, bytes) = (self.name(need.variant), need.bytes);
        let budget_bytes = state.residents.budget_bytes();
        if bytes > budget_bytes {
            return CacheError::TooLarge {
                variant,
                bytes,
                budget_bytes,
            };
        }
        CacheError::NoRoom {
            variant,
            bytes,
            free_bytes: no_room.free_bytes,
        }
    }

    fn evicted(&self, state: &mut CacheState, evicted: &Evicted) {
        state.counts.evictions += evicted.len() as u64;
        for &gone in evicted {
            tracing::debug!(variant = self.name(gone), "evicted");
        }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        // A panic can strike only while weights are read, and the state is whole then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CacheState ===

impl CacheState {
    fn load_of(&self, variant: VariantId) -> Micros {
        self.loads.get(variant.index()).copied().unwrap_or_default()
    }

    /// The need of a model that is loaded and takes these bytes. It has its memory of the device
    /// already: only the budget counts.
    fn booked<'a>(&self, need: Need<'a>, bytes: u64) -> Need<'a> {
        Need {
            bytes,
            parked_bytes: self.parked_bytes,
            ..need
        }
    }

    fn hold(&self, variant: VariantId, model: Arc<LoadedModel>) -> Arc<WorkerModel> {
        let generation = self.generations.get(&variant).copied().unwrap_or_default();
        Arc::new(WorkerModel { model, generation })
    }
}
