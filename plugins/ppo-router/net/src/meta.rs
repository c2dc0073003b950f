//! The metadata of weights.

use serde::{Deserialize, Serialize};

use crate::error::WeightsError;
use crate::observation::Layout;

/// Version of the metadata and the tensors.
pub const FORMAT: u32 = 1;

/// Largest width of a layer: bounds the memory that untrusted metadata can request.
const LAYER_MAX: usize = 65_536;

/// The purpose and the training of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// [`FORMAT`].
    pub format: u32,
    /// Its observation.
    pub layout: Layout,
    /// The model of each instance, numbered from 0: instances of one model share batch bounds.
    pub models: Vec<u32>,
    /// The variant of each model.
    pub variants: Vec<String>,
    /// Batch sizes of the bounds, ascending; empty if all batches have one request.
    pub batches: Vec<u32>,
    /// Widths of the layers, with inputs and outputs.
    pub layers: Vec<usize>,
    /// Length of a slot in microseconds.
    pub slot_us: u64,
    /// Deadline of the training, in microseconds.
    pub deadline_us: u64,
    /// Workload of the training.
    pub workload: String,
    /// Seed of the training.
    pub seed: u64,
    /// Command of the training.
    pub command: String,
}

/// All pairs of a minimum and a maximum batch, in the order of the batch heads' outputs: (1, 1),
/// (1, 3), (1, 5), (3, 3), (3, 5), (5, 5).
#[must_use]
pub fn batch_pairs(sizes: &[u32]) -> Vec<(u32, u32)> {
    let from = |(i, &min): (usize, &u32)| sizes[i..].iter().map(move |&max| (min, max));
    sizes.iter().enumerate().flat_map(from).collect()
}

// === impl Meta ===

impl Meta {
    /// Width of the last layer.
    #[must_use]
    pub fn outputs(&self) -> usize {
        let heads = self.variants.len() * batch_pairs(&self.batches).len();
        self.layout.instances + heads
    }

    pub(crate) fn check(&self) -> Result<(), WeightsError> {
        let wrong = |field: &str, reason: String| {
            Err(WeightsError::Metadata {
                field: field.to_owned(),
                reason,
            })
        };
        if self.format != FORMAT {
            return wrong("format", format!("is {}, must be {FORMAT}", self.format));
        }
        if let Some((field, reason)) = self.layout.fault() {
            return wrong(&format!("layout.{field}"), reason.to_owned());
        }
        let instances = self.layout.instances;
        if self.models.len() != instances {
            let reason = format!(
                "has {} entries for {instances} instances",
                self.models.len()
            );
            return wrong("models", reason);
        }
        if let Some(model) = self
            .models
            .iter()
            .find(|m| **m as usize >= self.variants.len())
        {
            return wrong("models", format!("has model {model}, which has no variant"));
        }
        let ascends = self.batches.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends || self.batches.first() == Some(&0) {
            return wrong("batches", "must be above 0 and ascend".to_owned());
        }
        let largest = self.batches.last().copied().unwrap_or(0);
        if self.layout.largest_batch != largest {
            let reason = format!(
                "is {}, must be the largest of batches, {largest}",
                self.layout.largest_batch
            );
            return wrong("layout.largest_batch", reason);
        }
        if self.slot_us == 0 {
            return wrong("slot_us", "must be above 0".to_owned());
        }
        let (inputs, outputs) = (self.layout.width(), self.outputs());
        let ends = (self.layers.first(), self.layers.last());
        if self.layers.len() < 2 || ends != (Some(&inputs), Some(&outputs)) {
            let reason = format!("must begin with {inputs} and end with {outputs}");
            return wrong("layers", reason);
        }
        if self
            .layers
            .iter()
            .any(|width| !(1..=LAYER_MAX).contains(width))
        {
            return wrong("layers", format!("must be 1 to {LAYER_MAX}"));
        }
        Ok(())
    }
}
