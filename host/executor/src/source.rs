//! Where models come from, and how the workers of one process share them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use candle_core::{Device, DeviceLocation};
use switchyard_core::ids::VariantId;
use switchyard_models::StagedModel;

use crate::error::LoadError;
use crate::job::InputType;

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

/// The models of a process. Workers on the same device that hold the same variant hold the
/// same weights; the last one to let go frees them.
///
/// Memory is still accounted per worker: sharing is a gain for the process, and a worker's
/// budget must not depend on what its neighbours happen to hold.
pub struct Weights {
    source: Arc<dyn ModelSource>,
    slots: Mutex<HashMap<(VariantId, DeviceLocation), Slot>>,
}

/// Locked while loading, so that the second worker waits for the first one's weights.
type Slot = Arc<Mutex<Weak<LoadedModel>>>;

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
    /// A file or a field of it is at fault.
    pub fn load(&self, variant: VariantId, device: &Device) -> Result<Arc<LoadedModel>, LoadError> {
        let slot = Arc::clone(
            lock(&self.slots)
                .entry((variant, device.location()))
                .or_default(),
        );
        let mut slot = lock(&slot);
        if let Some(model) = slot.upgrade() {
            return Ok(model);
        }
        let model = Arc::new(self.source.load(variant, device)?);
        *slot = Arc::downgrade(&model);
        Ok(model)
    }
}

/// What these locks guard is whole at every point where a panic can strike.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
