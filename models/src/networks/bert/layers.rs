//! The layers of a text encoder: linear maps and norms over the last dimension.

use candle_core::{Result, Tensor};
use switchyard_kernels::Activation;
use switchyard_kernels::norm::layer_norm;

use super::config::BertConfig;
use super::names::TensorNames;
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::layers::Linear;
use crate::ops::tensors::with_values;
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

    /// Of tensors `[batch, in]`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.forward(x)
    }

    /// `activation(onto + linear map of x)` of the tokens of texts.
    pub(super) fn forward_onto(
        &self,
        x: &Flow,
        onto: Option<&Flow>,
        activation: Activation,
    ) -> Result<Flow> {
        self.0.forward_onto(x, onto, activation)
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

    pub(super) fn forward(&self, x: Flow) -> Result<Flow> {
        match x {
            Flow::Graph(x) => {
                candle_nn::ops::layer_norm(&x, &self.scale, &self.shift, self.eps).map(Flow::Graph)
            }
            Flow::Packed(mut rows) => {
                with_values(&self.scale, |scale| {
                    with_values(&self.shift, |shift| {
                        layer_norm(&mut rows.values, scale, shift, self.eps);
                    })
                })??;
                Ok(Flow::Packed(rows))
            }
        }
    }
}
