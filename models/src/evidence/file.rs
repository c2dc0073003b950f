//! The tensors of an evidence file.

use std::path::Path;

use crate::error::ModelError;
use crate::weights::tensors::{RawTensors, read_tensors};

/// Name of the layer before the [`PROJECTION`]; a file without it embeds linearly.
pub(super) const HIDDEN: &str = "hidden";
/// The matrix to the embedding's dimensions, `[_, dimensions]`.
pub(super) const PROJECTION: &str = "projection";

/// Name of the classifier's layer. It has no hidden layer, so the embedding itself has to separate
/// the classes, and neighbours in it share their class.
pub(super) const CLASSIFIER: &str = "classifier";

/// The embedded training points `[points, dimensions]`.
pub(super) const POINTS: &str = "points";
/// Their labels `[points]`, as f32 like every tensor of the zoo.
pub(super) const LABELS: &str = "labels";

/// The tensors of an evidence file that were not taken yet.
pub(super) struct EvidenceTensors<'a> {
    pub(super) file: &'a Path,
    tensors: RawTensors,
}

// === impl EvidenceTensors ===

impl<'a> EvidenceTensors<'a> {
    /// Reads a file.
    pub(super) fn open(file: &'a Path) -> Result<Self, ModelError> {
        let tensors = read_tensors(file)?;
        Ok(Self { file, tensors })
    }

    /// Whether the file has a tensor of this name that was not taken yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Shape and values of a tensor.
    pub(super) fn take(&mut self, name: &str) -> Result<(Vec<usize>, Vec<f32>), ModelError> {
        let (shape, values) = self
            .tensors
            .remove(name)
            .ok_or_else(|| ModelError::tensor(self.file, name, "missing"))?;
        let values = values.map_err(|reason| ModelError::tensor(self.file, name, reason))?;
        Ok((shape, values))
    }

    /// The values of a tensor of this shape.
    pub(super) fn shaped(&mut self, name: &str, wanted: &[usize]) -> Result<Vec<f32>, ModelError> {
        let (shape, values) = self.take(name)?;
        if shape != wanted {
            let reason = format!("shape {shape:?}, must be {wanted:?}");
            return Err(ModelError::tensor(self.file, name, reason));
        }
        Ok(values)
    }
}
