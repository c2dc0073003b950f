//! The embedding in which neighbours share their class.

use super::Tensors;
use super::dense::{Dense, relu};
use crate::error::ModelError;

/// Name of the layer before the [`PROJECTION`]; a file without it embeds linearly.
pub(crate) const HIDDEN: &str = "hidden";
/// The matrix to the embedding's dimensions, `[_, dimensions]`.
pub(crate) const PROJECTION: &str = "projection";

/// A hidden layer with a ReLU, then a projection.
#[derive(Clone, Debug)]
pub(super) struct Embedding {
    hidden: Option<Dense>,
    projection: Dense,
}

// === impl Embedding ===

impl Embedding {
    /// Reads the embedding of inputs of `width` numbers.
    pub(super) fn read(tensors: &mut Tensors<'_>, width: usize) -> Result<Self, ModelError> {
        let hidden = Dense::read(tensors, HIDDEN, width)?;
        let inputs = hidden.as_ref().map_or(width, Dense::outputs);
        let (shape, values) = tensors.take(PROJECTION)?;
        match shape[..] {
            [rows, dimensions] if rows == inputs && dimensions > 0 => Ok(Self {
                hidden,
                projection: Dense::linear(values, dimensions),
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
