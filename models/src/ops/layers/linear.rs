//! A linear map of feature vectors.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, PackedConv, Window2d};

use super::packing::pack;
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::pointwise::{activate, add_bias};
use crate::ops::pooling::mean_over_positions;
use crate::ops::tensors::{kernel_error, to_map};
use crate::weights::mode::ComputeMode;
use crate::weights::params::{Init, Params};
use crate::weights::product::ProductWeights;

/// `[batch, in]` to `[batch, out]`.
pub(crate) struct Linear(LinearWeights);

enum LinearWeights {
    Graph {
        weights: ProductWeights,
        bias: Tensor,
    },
    Packed(PackedConv),
}

// === impl Linear ===

impl Linear {
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        output: usize,
    ) -> std::result::Result<Self, ModelError> {
        let init = Init::Normal((1.0 / input as f64).sqrt());
        let weights = params.weights(&format!("{name}.weight"), &[input, output], init)?;
        let bias = params.get(&format!("{name}.bias"), &[output], Init::Zero)?;
        let linear = Self::with_mode(weights, bias, params.mode());
        linear.map_err(ModelError::compute(name))
    }

    /// From `weight` `[in, out]` and `bias` `[out]`.
    pub(crate) fn from_weights(weights: impl Into<ProductWeights>, bias: Tensor) -> Self {
        Self(LinearWeights::Graph {
            weights: weights.into(),
            bias,
        })
    }

    /// The same, packed for [`ComputeMode::Packed`].
    pub(crate) fn with_mode(
        weights: ProductWeights,
        bias: Tensor,
        mode: ComputeMode,
    ) -> Result<Self> {
        if mode == ComputeMode::Graph {
            return Ok(Self::from_weights(weights, bias));
        }
        let weight = weights.widen()?;
        let (input, output) = weight.dims2()?;
        let rows = Tensor::cat(&[&weight, &bias.reshape((1, output))?], 0)?;
        let packed = pack(&rows, None, input, weights.precision())?;
        Ok(Self(LinearWeights::Packed(packed)))
    }

    /// `[batch, in]` to `[batch, out]`.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match &self.0 {
            LinearWeights::Graph { weights, bias } => {
                let weight = weights.widen()?;
                add_bias(&x.to_dtype(weight.dtype())?.matmul(&weight)?, bias)
            }
            LinearWeights::Packed(_) => {
                let (batch, width) = x.dims2()?;
                let rows = Flow::Packed(to_map(x, [batch, 1, 1, width])?);
                self.forward_rows(&rows, Activation::None)?.into_rows()
            }
        }
    }

    /// The same, from feature vectors to feature vectors.
    pub(crate) fn forward_rows(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        self.forward_onto(x, None, activation)
    }

    /// `activation(onto + linear map of x)`. As tensors, vectors may have any dimensions but their
    /// last one in front of it.
    pub(crate) fn forward_onto(
        &self,
        x: &Flow,
        onto: Option<&Flow>,
        activation: Activation,
    ) -> Result<Flow> {
        match &self.0 {
            LinearWeights::Graph { .. } => {
                let x = x.as_tensor()?;
                let mut shape = x.dims().to_vec();
                let input = shape.pop().unwrap_or_default();
                let rows = self.forward(&x.reshape(((), input))?)?;
                shape.push(rows.dim(1)?);
                let mut sum = rows.reshape(shape)?;
                if let Some(onto) = onto {
                    sum = (onto.as_tensor()? + sum)?;
                }
                activate(sum, activation).map(Flow::Graph)
            }
            LinearWeights::Packed(packed) => {
                let point = Window2d::centred(1, 1);
                let onto = onto.map(Flow::as_map).transpose()?;
                let result = packed.forward(x.as_map()?, point, onto, activation);
                result.map(Flow::Packed).map_err(kernel_error)
            }
        }
    }

    /// Mean over the length of `[batch, length, in]`, then the linear map.
    pub(crate) fn forward_pooled(&self, x: &Tensor) -> Result<Tensor> {
        match &self.0 {
            LinearWeights::Graph { .. } => self.forward(&mean_over_positions(x)?),
            LinearWeights::Packed(_) => {
                let rows = Flow::sequence(ComputeMode::Packed, x)?.mean_pool()?;
                self.forward_rows(&rows, Activation::None)?.into_rows()
            }
        }
    }
}
