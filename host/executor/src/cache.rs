//! The models a worker holds, under its memory budget.
//!
//! Two threads use a cache: the worker's, which needs a variant for each batch, and its loader,
//! which makes variants resident ahead of time. What goes when room is needed is the rule of
//! [`switchyard_core::residents`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_core::residents::{Evicted, Need, NoRoom, Residents};
use switchyard_core::time::Micros;

use crate::device::OfDevice;
use crate::error::CacheError;
use crate::job::{CacheCounts, Residency};
use crate::memory::MemoryGauge;
use crate::source::{LoadedModel, Weights};

/// Loads on demand and ahead of it; never evicts what is pinned or in use.
pub struct ModelCache {
    weights: Arc<Weights>,
    device: Device,
    /// What the device's memory has, where it has one of its own.
    gauge: Option<Box<dyn MemoryGauge>>,
    state: Mutex<State>,
}

struct State {
    residents: Residents<Held>,
    /// Load times by variant, as the policies are told them.
    loads: Vec<Micros>,
    /// Part of the budget that parked activations take, and weights kept for their sake.
    parked_bytes: u64,
    /// Grows with each replacement of a variant's weights.
    generations: BTreeMap<VariantId, u64>,
    version: u64,
    counts: CacheCounts,
}

/// A worker's own hold on weights that other workers may share: its count says whether *this*
/// worker uses them, which the shared count cannot.
struct Held {
    model: Arc<LoadedModel>,
    generation: u64,
}

/// A model that stays resident for as long as this exists.
pub struct InUse(Arc<Held>);

/// Weights that were replaced.
pub(crate) struct Replaced {
    pub(crate) generation: u64,
    pub(crate) model: Arc<LoadedModel>,
}

// === impl InUse ===

impl InUse {
    /// Which of the variant's weights these are: grows with each replacement.
    pub(crate) fn generation(&self) -> u64 {
        self.0.generation
    }
}

impl std::ops::Deref for InUse {
    type Target = LoadedModel;
    fn deref(&self) -> &LoadedModel {
        &self.0.model
    }
}

// === impl ModelCache ===

impl ModelCache {
    /// An empty cache of `budget_bytes` on `device`.
    pub fn new(weights: Arc<Weights>, device: Device, budget_bytes: u64) -> Self {
        let state = State {
            residents: Residents::new(budget_bytes),
            loads: Vec::new(),
            parked_bytes: 0,
            generations: BTreeMap::new(),
            version: 0,
            counts: CacheCounts::default(),
        };
        let gauge: Option<Box<dyn MemoryGauge>> = match device.is_cuda() {
            true => Some(Box::new(OfDevice(device.clone()))),
            false => None,
        };
        Self {
            weights,
            device,
            gauge,
            state: Mutex::new(state),
        }
    }

    /// With another look at the device's memory.
    #[must_use]
    pub fn with_gauge(self, gauge: Box<dyn MemoryGauge>) -> Self {
        Self {
            gauge: Some(gauge),
            ..self
        }
    }

    /// Never evicts this variant from now on; it is not loaded by this.
    pub fn pin(&self, variant: VariantId) {
        self.state().residents.pin(variant);
    }

    /// Load times by variant, which eviction weighs; without them all loads cost the same.
    pub fn set_loads(&self, loads: Vec<Micros>) {
        self.state().loads = loads;
    }

    /// Part of the budget that something else than models takes from now on, in bytes.
    pub(crate) fn set_parked_bytes(&self, bytes: u64) {
        self.state().parked_bytes = bytes;
    }

    /// The variant, and the time its load took: zero when it was resident. Of what must go for
    /// it, `soon` goes last.
    ///
    /// # Errors
    /// It does not fit, now or ever, or cannot be read.
    pub fn acquire(
        &self,
        variant: VariantId,
        soon: &[VariantId],
    ) -> Result<(InUse, Micros), CacheError> {
        // Held while loading: this thread has nothing else to do, and the loader must not take
        // the room. It takes this lock before or after it reads weights, never meanwhile.
        let mut state = self.state();
        if let Some(held) = state.residents.touch(variant) {
            state.counts.hits += 1;
            return Ok((InUse(held), Micros::ZERO));
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
        Ok((InUse(held), load))
    }

    /// Makes a variant resident beside whatever runs, without evicting the first `sooner` of
    /// `soon`. The time it took; none when there was nothing to do or no room for it.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn load_ahead(
        &self,
        variant: VariantId,
        soon: &[VariantId],
        sooner: usize,
    ) -> Result<Option<Micros>, CacheError> {
        let start = Instant::now();
        {
            let mut state = self.state();
            if state.residents.contains(variant) {
                return Ok(None);
            }
            let bytes = self.weights.memory_bytes(variant)?;
            let need = self.need(&state, variant, bytes, soon);
            let begun = state.residents.begin_load(need, sooner);
            let evicted = begun.map_err(|no_room| self.refusal(&state, need, no_room))?;
            self.evicted(&mut state, &evicted);
        }
        let loaded = self.weights.load(variant, &self.device);
        let mut state = self.state();
        match loaded {
            Ok(model) => {
                let load = state.load_of(variant);
                let held = state.hold(variant, model);
                if !state.residents.end_load(variant, load, held) {
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

    /// What must not go for a variant that somebody asks for ahead of any request: nothing but
    /// what is pinned and in use if it is pinned itself, else all that is here.
    pub(crate) fn not_for(&self, variant: VariantId) -> Vec<VariantId> {
        let state = self.state();
        if state.residents.is_pinned(variant) {
            return Vec::new();
        }
        state.residents.variants()
    }

    /// Gives back the room of a load that panicked.
    pub(crate) fn abandon(&self, variant: VariantId) {
        self.state().residents.abandon_load(variant);
    }

    /// What of `soon` is not resident, with its position there.
    pub(crate) fn missing(&self, soon: &[VariantId]) -> Vec<(usize, VariantId)> {
        self.state().residents.missing(soon).collect()
    }

    /// Lets go of a variant, pinned or not. A batch that uses it keeps it until its end.
    pub fn unload(&self, variant: VariantId) {
        if self.state().residents.remove(variant).is_some() {
            tracing::debug!(variant = self.name(variant), "unloaded");
        }
    }

    /// Lets go of everything that is neither pinned nor in use, and forgets that loading `wanted`
    /// has failed: there may be room for it now. The number of variants that went.
    pub(crate) fn evict_idle(&self, wanted: VariantId) -> usize {
        self.weights.forgive(wanted, &self.device);
        let mut state = self.state();
        let evicted = state.residents.evict_idle();
        self.evicted(&mut state, &evicted);
        evicted.len()
    }

    /// Holds other weights for a variant from now on; those before, if it was resident.
    pub(crate) fn replace(&self, variant: VariantId, model: &Arc<LoadedModel>) -> Option<Replaced> {
        let mut state = self.state();
        *state.generations.entry(variant).or_default() += 1;
        let held = state.hold(variant, Arc::clone(model));
        let before = state.residents.replace(variant, held)?;
        Some(Replaced {
            generation: before.generation,
            model: Arc::clone(&before.model),
        })
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
        self.state().residents.variants()
    }

    /// What the memory holds now.
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
        state: &mut State,
        variant: VariantId,
        soon: &[VariantId],
    ) -> Result<Arc<Held>, CacheError> {
        let expected_bytes = self.weights.memory_bytes(variant)?;
        self.make_room(state, variant, expected_bytes, soon)?;
        let model = self.weights.load(variant, &self.device)?;
        let bytes = model.bytes;
        if bytes > expected_bytes {
            // The source promised less than it took.
            self.make_room(state, variant, bytes, soon)?;
        }
        let load = state.load_of(variant);
        let held = state.hold(variant, model);
        state
            .residents
            .insert(variant, bytes, load, Arc::clone(&held));
        Ok(held)
    }

    fn make_room(
        &self,
        state: &mut State,
        variant: VariantId,
        bytes: u64,
        soon: &[VariantId],
    ) -> Result<(), CacheError> {
        let need = self.need(state, variant, bytes, soon);
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
        state: &State,
        variant: VariantId,
        bytes: u64,
        soon: &'a [VariantId],
    ) -> Need<'a> {
        // The driver is asked when something is loaded, and not for every batch: it takes its time.
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

    fn refusal(&self, state: &State, need: Need<'_>, no_room: NoRoom) -> CacheError {
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

    fn evicted(&self, state: &mut State, evicted: &Evicted) {
        state.counts.evictions += evicted.len() as u64;
        for &gone in evicted {
            tracing::debug!(variant = self.name(gone), "evicted");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic can strike while weights are read, where the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn load_of(&self, variant: VariantId) -> Micros {
        self.loads.get(variant.index()).copied().unwrap_or_default()
    }

    fn hold(&self, variant: VariantId, model: Arc<LoadedModel>) -> Arc<Held> {
        let generation = self.generations.get(&variant).copied().unwrap_or_default();
        Arc::new(Held { model, generation })
    }
}
