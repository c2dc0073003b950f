//! The embedding in which neighbours share their class.

use super::file::{EvidenceTensors, HIDDEN, PROJECTION};
use super::layer::{EvidenceLayer, relu};
use crate::error::ModelError;

/// A hidden layer with a ReLU, then a projection.
#[derive(Clone, Debug)]
pub(super) struct Embedding {
    hidden: Option<EvidenceLayer>,
    projection: EvidenceLayer,
}

// === impl Embedding ===

impl Embedding {
    /// Reads the embedding of inputs of `width` values.
    pub(super) fn read(
        tensors: &mut EvidenceTensors<'_>,
        width: usize,
    ) -> Result<Self, ModelError> {
        let hidden = EvidenceLayer::read(tensors, HIDDEN, width)?;
        let inputs = hidden.as_ref().map_or(width, EvidenceLayer::outputs);
        let (shape, values) = tensors.take(PROJECTION)?;
        match shape[..] {
            [rows, dimensions] if rows == inputs && dimensions > 0 => Ok(Self {
                hidden,
                projection: EvidenceLayer::linear(values, dimensions),
            }),
            _ => {
                let reason = format!("shape {shape:?}, must be [{inputs}, _]");
                Err(ModelError::tensor(tensors.file, PROJECTION, reason))
            }
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.projection.outputs()
    }

    pub(super) fn apply(&self, features: &[f32]) -> Vec<f32> {
        match &self.hidden {
            Some(hidden) => self.projection.apply(&relu(hidden.apply(features))),
            None => self.projection.apply(features),
        }
    }
}
