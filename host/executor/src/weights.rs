//! Weights that the workers of one process share.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_threads::panic_text;

use crate::device::OpenedDevice;
use crate::error::LoadError;
use crate::source::{LoadedModel, ModelSource};
use crate::trial;

/// The models of a process. Workers with the same [`OpenedDevice`] that hold the same variant hold
/// the same weights; the last of them to drop the weights frees them.
///
/// Each worker's budget still counts all weights that it holds: a budget must not depend on the
/// models of other workers.
pub struct Weights {
    source: Arc<dyn ModelSource>,
    slots: Mutex<HashMap<(VariantId, OpenedDevice), Arc<WeightsSlot>>>,
}

/// One variant on one device.
#[derive(Default)]
struct WeightsSlot {
    /// Held while loading, so that a second worker waits for the weights of the first. The driver
    /// never takes it.
    loading: Mutex<()>,
    /// Held for moments only.
    shared: Mutex<SharedWeights>,
}

/// The weights of a slot.
#[derive(Default)]
struct SharedWeights {
    /// The weights to use, as long as a worker holds them.
    live: Weak<LoadedModel>,
    /// The same weights, kept while the files on disk are refused: an eviction would lose them.
    kept: Option<Arc<LoadedModel>>,
    failed: Option<FailedLoad>,
    /// Counts the successful renewals: a load that began before one has read old files.
    renewals: u64,
}

/// The last attempt to load.
struct FailedLoad {
    error: LoadError,
    /// Nothing is tried before this moment.
    until: Instant,
    pause: Duration,
}

/// Pause after the first failed load; it doubles with each further failure ...
const PAUSE: Duration = Duration::from_secs(1);
/// ... up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

// === impl Weights ===

impl Weights {
    /// Shares the models of `source`.
    pub fn new(source: Arc<dyn ModelSource>) -> Arc<Self> {
        Arc::new(Self {
            source,
            slots: Mutex::default(),
        })
    }

    /// Shares the models of `source`, and those that are loaded now: `same` names the variant of
    /// this source that a variant of the new one is equal to.
    pub fn sharing(
        &self,
        source: Arc<dyn ModelSource>,
        same: impl Fn(VariantId) -> Option<VariantId>,
        variants: u32,
    ) -> Arc<Self> {
        let slots = lock(&self.slots);
        let mut shared = HashMap::new();
        for id in (0..variants).map(VariantId) {
            let earlier = same(id);
            for ((variant, device), slot) in slots.iter() {
                if Some(*variant) == earlier {
                    shared.insert((id, *device), Arc::clone(slot));
                }
            }
        }
        Arc::new(Self {
            source,
            slots: Mutex::new(shared),
        })
    }

    /// `app/variant`, for messages.
    pub fn name(&self, variant: VariantId) -> String {
        self.source.name(variant)
    }

    /// Bytes the variant will take, known before it is loaded.
    ///
    /// # Errors
    /// The source has no such variant.
    pub fn memory_bytes(&self, variant: VariantId) -> Result<u64, LoadError> {
        self.source.memory_bytes(variant)
    }

    /// The variant on this device. It is read only if no worker holds it.
    ///
    /// # Errors
    /// A file or a field of it is at fault. For a while afterwards the same error is returned
    /// without reading, marked as [`LoadError::repeated`].
    pub fn load(&self, variant: VariantId, device: &Device) -> Result<Arc<LoadedModel>, LoadError> {
        let slot = self.slot(variant, device);
        let _one_at_a_time = lock(&slot.loading);
        loop {
            let began = {
                let shared = lock(&slot.shared);
                if let Some(model) = shared.live.upgrade() {
                    return Ok(model);
                }
                if let Some(failed) = shared.failed.as_ref().filter(|f| Instant::now() < f.until) {
                    return Err(LoadError {
                        repeated: true,
                        ..failed.error.clone()
                    });
                }
                shared.renewals
            };
            let loaded = self.source.load(variant, device);
            let mut shared = lock(&slot.shared);
            if shared.renewals != began {
                continue; // Newer weights were taken in meanwhile.
            }
            return match loaded {
                Ok(model) => {
                    let model = Arc::new(model);
                    shared.live = Arc::downgrade(&model);
                    shared.failed = None;
                    Ok(model)
                }
                Err(error) => {
                    shared.fail(&error);
                    Err(error)
                }
            };
        }
    }

    /// Reads the variant anew while the old weights serve, tries it on each of these devices, and
    /// uses it for every later load. The caller passes the returned models, in the order of the
    /// devices, to the workers that hold the old weights ([`Worker::replace`]).
    ///
    /// If one device refuses it, the old weights stay on all of them, even if evicted, as long as
    /// a worker holds them now.
    ///
    /// [`Worker::replace`]: crate::worker::Worker::replace
    ///
    /// # Errors
    /// A file or a field of it is at fault, or the model fails its trial.
    pub fn renew(
        &self,
        variant: VariantId,
        devices: &[Device],
    ) -> Result<Vec<Arc<LoadedModel>>, LoadError> {
        let mut distinct: Vec<(OpenedDevice, &Device)> = Vec::new();
        for device in devices {
            let opened = OpenedDevice::of(device);
            if distinct.iter().all(|(known, _)| *known != opened) {
                distinct.push((opened, device));
            }
        }
        // Without a slot's lock: batches that need the old weights do not wait for this.
        let read = distinct.iter().map(|&(opened, device)| {
            let model = self.read_tried(variant, device)?;
            Ok((opened, model))
        });
        let read: Result<HashMap<OpenedDevice, Arc<LoadedModel>>, LoadError> = read.collect();
        for (opened, device) in distinct {
            let slot = self.slot(variant, device);
            match &read {
                Ok(read) => lock(&slot.shared).renew(&read[&opened]),
                Err(error) => lock(&slot.shared).refuse(error),
            }
        }
        let read = read?;
        let models = devices
            .iter()
            .map(|d| Arc::clone(&read[&OpenedDevice::of(d)]));
        Ok(models.collect())
    }

    /// The variant as its files are now, tried once.
    fn read_tried(
        &self,
        variant: VariantId,
        device: &Device,
    ) -> Result<Arc<LoadedModel>, LoadError> {
        let read = || {
            let model = self.source.load(variant, device)?;
            trial::run(&model, device)
                .map_err(|error| LoadError::new(&model.name, format!("a trial run: {error}")))?;
            Ok(Arc::new(model))
        };
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
            let reason = format!("a trial run panicked: {}", panic_text(&*panic));
            Err(LoadError::new(self.name(variant), reason))
        })
    }

    /// Ends the pause after a failed load: the next load tries again. Does not wait for a load that is
    /// under way.
    pub fn forgive(&self, variant: VariantId, device: &Device) {
        lock(&self.slot(variant, device).shared).failed = None;
    }

    /// Drops weights that are kept although no worker holds them. Does not wait for a load that is
    /// under way.
    pub fn forget(&self, variant: VariantId, device: &Device) {
        lock(&self.slot(variant, device).shared).kept = None;
    }

    fn slot(&self, variant: VariantId, device: &Device) -> Arc<WeightsSlot> {
        let mut slots = lock(&self.slots);
        Arc::clone(
            slots
                .entry((variant, OpenedDevice::of(device)))
                .or_default(),
        )
    }
}

// === impl SharedWeights ===

impl SharedWeights {
    fn renew(&mut self, model: &Arc<LoadedModel>) {
        self.live = Arc::downgrade(model);
        self.kept = None;
        self.failed = None;
        self.renewals += 1;
    }

    /// The files on disk were refused: keeps the weights that serve.
    fn refuse(&mut self, error: &LoadError) {
        self.kept = self.live.upgrade();
        if self.kept.is_none() {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: &LoadError) {
        let pause = match &self.failed {
            Some(before) => (before.pause * 2).min(PAUSE_MAX),
            None => PAUSE,
        };
        self.failed = Some(FailedLoad {
            error: error.clone(),
            until: Instant::now() + pause,
            pause,
        });
    }
}

/// The guarded data is whole at every point where a panic could strike.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
