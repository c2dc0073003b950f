//! The network of an evidence file, to be trained.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{DType, Result, Tensor, Var};
use rand_pcg::Pcg64;

use super::file::{CLASSIFIER, HIDDEN, LABELS, POINTS, PROJECTION};
use crate::error::ModelError;
use crate::ops::layers::Linear;
use crate::weights::params::{Init, Params};
use crate::weights::tensors::write_tensors;

/// Width of the layer before the embedding.
const HIDDEN_WIDTH: usize = 64;

/// The layers of an evidence file: an embedding, and a linear classifier on it.
pub struct EvidenceNetwork {
    hidden: Linear,
    projection: Tensor,
    classifier: Linear,
    vars: BTreeMap<String, Var>,
}

// === impl EvidenceNetwork ===

impl EvidenceNetwork {
    /// Variables drawn from `rng`, on the CPU, for inputs of `width` features.
    ///
    /// # Errors
    /// A tensor cannot be made.
    pub fn fresh(
        rng: Pcg64,
        width: usize,
        dimensions: usize,
        classes: usize,
    ) -> std::result::Result<Self, ModelError> {
        let mut params = Params::fresh(rng);
        let spread = Init::Normal((1.0 / HIDDEN_WIDTH as f64).sqrt());
        Ok(Self {
            hidden: Linear::new(&mut params, HIDDEN, width, HIDDEN_WIDTH)?,
            projection: params.get(PROJECTION, &[HIDDEN_WIDTH, dimensions], spread)?,
            classifier: Linear::new(&mut params, CLASSIFIER, dimensions, classes)?,
            vars: params.into_vars(),
        })
    }

    /// The variables by name.
    pub fn vars(&self) -> &BTreeMap<String, Var> {
        &self.vars
    }

    /// The classifier's unnormalised scores `[batch, classes]` of `[batch, features]`.
    ///
    /// # Errors
    /// The inputs have another shape.
    pub fn scores(&self, inputs: &Tensor) -> Result<Tensor> {
        self.classifier.forward(&self.embed(inputs)?)
    }

    /// Writes the variables, the embedding of the points `inputs` `[points, features]` and their
    /// `labels` `[points]`.
    ///
    /// # Errors
    /// The points have another shape, or the file cannot be written.
    pub fn write(
        &self,
        file: &Path,
        inputs: &Tensor,
        labels: &Tensor,
    ) -> std::result::Result<(), ModelError> {
        let mut tensors: BTreeMap<String, Tensor> = self
            .vars
            .iter()
            .map(|(name, var)| (name.clone(), var.as_tensor().detach()))
            .collect();
        let compute = || ModelError::compute("embedding");
        let embedded = self.embed(inputs).map_err(compute())?;
        let labels = labels.to_dtype(DType::F32).map_err(compute())?;
        tensors.insert(POINTS.to_owned(), embedded);
        tensors.insert(LABELS.to_owned(), labels);
        write_tensors(file, &tensors)
    }

    /// `[batch, features]` to `[batch, dimensions]`.
    fn embed(&self, inputs: &Tensor) -> Result<Tensor> {
        self.hidden
            .forward(inputs)?
            .relu()?
            .matmul(&self.projection)
    }
}
