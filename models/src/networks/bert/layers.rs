//! The layers of a text encoder: linear maps and norms over the last dimension.

use candle_core::{Result, Tensor};

use super::config::BertConfig;
use super::names::TensorNames;
use crate::error::ModelError;
use crate::ops::layers::Linear;
use crate::weights::params::{Init, Params};

/// `[rows, in]` to `[rows, out]`.
pub(super) struct BertLinear(Linear);

/// Layer normalisation over the last dimension.
pub(super) struct LayerNorm {
    scale: Tensor,
    shift: Tensor,
    eps: f32,
}

// === impl BertLinear ===

impl BertLinear {
    pub(super) fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        output: usize,
    ) -> std::result::Result<Self, ModelError> {
        Self::joined(params, &[name.to_owned()], [input, output])
    }

    /// Several layers of the same input as one.
    pub(super) fn joined(
        params: &mut Params,
        names: &[String],
        [input, output]: [usize; 2],
    ) -> std::result::Result<Self, ModelError> {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for name in names {
            weights.push(params.get(&format!("{name}.weight"), &[output, input], Init::Zero)?);
            biases.push(params.get(&format!("{name}.bias"), &[output], Init::Zero)?);
        }
        let joined = names.join(" + ");
        let failed = |error| ModelError::compute(&joined)(error);
        let join = |parts: &[Tensor]| Tensor::cat(parts, 0);
        // Published as `[out, in]`.
        let weight = join(&weights).and_then(|weight| weight.t()?.contiguous());
        let weight = params.narrow(&joined, weight.map_err(failed)?)?;
        let bias = join(&biases).map_err(failed)?;
        let linear = Linear::with_mode(weight, bias, params.mode());
        linear.map(Self).map_err(failed)
    }

    /// Applied to the last dimension, for any other dimensions.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut shape = x.dims().to_vec();
        let input = shape.pop().unwrap_or_default();
        let rows = self.0.forward(&x.reshape(((), input))?)?;
        shape.push(rows.dim(1)?);
        rows.reshape(shape)
    }
}

// === impl LayerNorm ===

impl LayerNorm {
    pub(super) fn new(
        params: &mut Params,
        names: &TensorNames,
        name: &str,
        config: &BertConfig,
    ) -> std::result::Result<Self, ModelError> {
        let width = config.hidden_size;
        let (scale, shift) = names.norm();
        Ok(Self {
            scale: params.get(&format!("{name}.{scale}"), &[width], Init::Zero)?,
            shift: params.get(&format!("{name}.{shift}"), &[width], Init::Zero)?,
            eps: config.layer_norm_eps as f32,
        })
    }

    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(x, &self.scale, &self.shift, self.eps)
    }
}
