//! The two layers everything is built from: a channels-last 1-D convolution and a linear layer.
//!
//! Activations are `[batch, length, channels]`; see `unfold` for why.

use candle_core::{Result, Tensor};

use crate::error::ModelError;
use crate::params::{Init, Params};
use crate::pointwise::add_bias;
use crate::precision::Weights;
use crate::unfold::Window;

/// A "same" convolution with stride: `[batch, length, in]` to `[batch, ceil(length/stride), out]`.
pub(crate) struct Conv1d {
    /// `[kernel * in + 1, out]`: rows ordered by (offset, input channel), then the bias.
    weight: Weights,
    window: Window,
}

/// Shape of a convolution. `kernel` must be a multiple of `stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvShape {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
}

// === impl Conv1d ===

impl Conv1d {
    /// He initialisation scaled by `gain` (1 in front of a ReLU).
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        shape: ConvShape,
        gain: f64,
    ) -> std::result::Result<Self, ModelError> {
        let rows = shape.kernel * shape.input;
        // The bias starts as small as a weight.
        let init = Init::Normal(gain * (2.0 / rows as f64).sqrt());
        let name = format!("{name}.weight");
        Ok(Self {
            weight: params.weights(&name, &[rows + 1, shape.output], init)?,
            window: Window {
                kernel: shape.kernel,
                stride: shape.stride,
            },
        })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, _) = x.dims3()?;
        self.window
            .unfold(x)?
            .matmul(&self.weight.widen()?)?
            .reshape((batch, self.window.count(length), ()))
    }
}

/// `[batch, in]` to `[batch, out]`.
pub(crate) struct Linear {
    weight: Weights,
    bias: Tensor,
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
        Ok(Self {
            weight: params.weights(&format!("{name}.weight"), &[input, output], init)?,
            bias: params.get(&format!("{name}.bias"), &[output], Init::Zero)?,
        })
    }

    /// With `weight` `[in, out]` and `bias` `[out]` made elsewhere.
    pub(crate) fn from_weights(weight: impl Into<Weights>, bias: Tensor) -> Self {
        Self {
            weight: weight.into(),
            bias,
        }
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        add_bias(&x.matmul(&self.weight.widen()?)?, &self.bias)
    }

    /// Mean over the length of `[batch, length, in]`, then the linear map.
    pub(crate) fn forward_pooled(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, _) = x.dims3()?;
        // As a product: candle reduces over a middle dimension element by element.
        let mean = Tensor::full(1.0 / length as f32, (batch, 1, length), x.device())?;
        self.forward(&mean.matmul(x)?.squeeze(1)?)
    }
}
