//! Where models come from, and how the workers of one process share them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_models::StagedModel;

use crate::device::Place;
use crate::error::LoadError;
use crate::job::InputType;
use crate::trial;
use crate::worker::panic_text;

/// Loads variants by their id. An id means the same variant for as long as the source lives: a
/// catalog that numbers its variants anew needs a new source and new workers.
pub trait ModelSource: Send + Sync {
    /// `app/variant`, for messages.
    fn name(&self, variant: VariantId) -> String;

    /// Bytes the variant will take on the device, known before it is loaded.
    ///
    /// # Errors
    /// There is no such variant.
    fn memory_bytes(&self, variant: VariantId) -> Result<u64, LoadError>;

    /// Reads the variant onto the device.
    ///
    /// # Errors
    /// A file or a field of it is at fault.
    fn load(&self, variant: VariantId, device: &Device) -> Result<LoadedModel, LoadError>;
}

/// A model on a device.
pub struct LoadedModel {
    /// `app/variant`, for messages.
    pub name: String,
    /// The network.
    pub model: Arc<dyn StagedModel>,
    /// What its app's requests hold.
    pub inputs: Arc<[InputSpec]>,
    /// Positions of the inputs that it reads, ascending. Stage 0 takes their values one after
    /// another, as `[batch, values]`.
    pub reads: Vec<usize>,
    /// Bytes its weights take on the device.
    pub bytes: u64,
}

/// One input tensor of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSpec {
    /// Name in messages.
    pub name: String,
    /// Type of the values.
    pub input_type: InputType,
    /// Shape without the batch dimension.
    pub row_shape: Vec<usize>,
}

/// The models of a process. Workers at the same [`Place`] that hold the same variant hold the
/// same weights; the last one to let go frees them.
///
/// Memory is still accounted per worker: sharing is a gain for the process, and a worker's
/// budget must not depend on what its neighbours happen to hold.
pub struct Weights {
    source: Arc<dyn ModelSource>,
    slots: Mutex<HashMap<(VariantId, Place), Slot>>,
}

/// Locked while loading, so that the second worker waits for the first one's weights.
type Slot = Arc<Mutex<Shared>>;

/// One variant on one device.
#[derive(Default)]
struct Shared {
    live: Weak<LoadedModel>,
    /// Kept while what is on disk is worse: good weights that were refused a successor would
    /// otherwise be lost with their eviction.
    kept: Option<Arc<LoadedModel>>,
    failed: Option<Failure>,
}

/// The last attempt to load failed.
struct Failure {
    error: LoadError,
    /// Until then nothing is tried.
    until: Instant,
    pause: Duration,
}

/// After a load has failed the next attempt is this far away, then twice as far each time ...
const PAUSE: Duration = Duration::from_secs(1);
/// ... up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

// === impl InputSpec ===

impl InputSpec {
    /// Values per request.
    pub fn row_len(&self) -> usize {
        self.row_shape.iter().product()
    }
}

// === impl Weights ===

impl Weights {
    /// Shares what `source` loads.
    pub fn new(source: Arc<dyn ModelSource>) -> Arc<Self> {
        Arc::new(Self {
            source,
            slots: Mutex::default(),
        })
    }

    /// `app/variant`, for messages.
    pub fn name(&self, variant: VariantId) -> String {
        self.source.name(variant)
    }

    /// Bytes the variant will take, known before it is loaded.
    ///
    /// # Errors
    /// There is no such variant.
    pub fn memory_bytes(&self, variant: VariantId) -> Result<u64, LoadError> {
        self.source.memory_bytes(variant)
    }

    /// The variant on this device, read only if no worker holds it.
    ///
    /// # Errors
    /// A file or a field of it is at fault. For a while after that the same error is given again
    /// without a look at the files, marked as [`LoadError::repeated`].
    pub fn load(&self, variant: VariantId, device: &Device) -> Result<Arc<LoadedModel>, LoadError> {
        let slot = self.slot(variant, device);
        let mut shared = lock(&slot);
        if let Some(model) = shared.live.upgrade() {
            return Ok(model);
        }
        if let Some(failed) = shared.failed.as_ref().filter(|f| Instant::now() < f.until) {
            return Err(LoadError {
                repeated: true,
                ..failed.error.clone()
            });
        }
        match self.source.load(variant, device) {
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
        }
    }

    /// Reads the variant anew beside what serves, tries it on each of these devices, and has it
    /// loaded from now on; for whoever holds the old weights to be told of ([`Worker::replace`]).
    /// What is returned is in the order of the devices.
    ///
    /// When one place refuses it, the old weights are kept everywhere, resident or not, for as
    /// long as somebody holds them now.
    ///
    /// [`Worker::replace`]: crate::worker::Worker::replace
    ///
    /// # Errors
    /// A file or a field of it is at fault, or the model does not do what it must.
    pub fn renew(
        &self,
        variant: VariantId,
        devices: &[Device],
    ) -> Result<Vec<Arc<LoadedModel>>, LoadError> {
        let mut places: Vec<(Place, &Device)> = Vec::new();
        for device in devices {
            let place = Place::of(device);
            if places.iter().all(|(known, _)| *known != place) {
                places.push((place, device));
            }
        }
        // Not under a slot's lock: nobody who wants the old weights waits for this.
        let read = places.iter().map(|&(place, device)| {
            let model = self.read_tried(variant, device)?;
            Ok((place, model))
        });
        let read: Result<HashMap<Place, Arc<LoadedModel>>, LoadError> = read.collect();
        for (place, device) in places {
            let slot = self.slot(variant, device);
            match &read {
                Ok(read) => lock(&slot).renew(&read[&place]),
                Err(error) => lock(&slot).refuse(error),
            }
        }
        let read = read?;
        let of_devices = devices.iter().map(|d| Arc::clone(&read[&Place::of(d)]));
        Ok(of_devices.collect())
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

    /// Forgets that a load has failed: somebody says that it is worth another attempt.
    pub fn forgive(&self, variant: VariantId, device: &Device) {
        lock(&self.slot(variant, device)).failed = None;
    }

    /// Lets go of weights that are kept although nobody holds them.
    pub fn forget(&self, variant: VariantId, device: &Device) {
        lock(&self.slot(variant, device)).kept = None;
    }

    fn slot(&self, variant: VariantId, device: &Device) -> Slot {
        let mut slots = lock(&self.slots);
        Arc::clone(slots.entry((variant, Place::of(device))).or_default())
    }
}

// === impl Shared ===

impl Shared {
    fn renew(&mut self, model: &Arc<LoadedModel>) {
        self.live = Arc::downgrade(model);
        self.kept = None;
        self.failed = None;
    }

    /// What is on disk was refused: what serves is worth keeping.
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
        self.failed = Some(Failure {
            error: error.clone(),
            until: Instant::now() + pause,
            pause,
        });
    }
}

/// What these locks guard is whole at every point where a panic can strike.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
