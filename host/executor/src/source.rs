//! Where models come from.

use std::sync::Arc;

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_models::StagedModel;
use switchyard_models::card::Datatype;

use crate::error::LoadError;
use crate::job::InputType;

/// Loads variants by their id. An id means the same variant for as long as the source lives: a
/// catalog with other ids needs a new source and new workers.
pub trait ModelSource: Send + Sync {
    /// `app/variant`, for messages.
    fn name(&self, variant: VariantId) -> String;

    /// Bytes the variant will take on the device, known before it is loaded.
    ///
    /// # Errors
    /// The source has no such variant.
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
    /// The inputs of its app's requests.
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
    /// Element type on the wire.
    pub datatype: Datatype,
    /// Type of the values.
    pub input_type: InputType,
    /// Shape without the batch dimension; a common one if it differs from request to request.
    pub row_shape: Vec<usize>,
    /// The dimensions that differ from request to request.
    pub open: Vec<OpenDimension>,
}

/// A dimension of an input that differs from request to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDimension {
    /// Position in the shape without the batch dimension.
    pub axis: usize,
    /// Largest size.
    pub largest: usize,
}

// === impl InputSpec ===

impl InputSpec {
    /// Values per request.
    pub fn row_len(&self) -> usize {
        self.row_shape.iter().product()
    }
}
