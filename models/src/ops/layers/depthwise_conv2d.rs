//! A convolution of each channel of an image on its own.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, PackedDepthwise, Window2d};

use crate::error::ModelError;
use crate::ops::depthwise2d::depthwise;
use crate::ops::flow::Flow;
use crate::ops::pointwise::activate;
use crate::ops::tensors::{kernel_error, with_values};
use crate::weights::mode::ComputeMode;
use crate::weights::params::{Init, Params};

/// `[batch, height, width, channels]` to `[batch, lines, columns, channels]`.
pub(crate) struct DepthwiseConv2d {
    weights: DepthwiseWeights,
    window: Window2d,
}

enum DepthwiseWeights {
    /// `[positions + 1, channels]`: rows ordered by (line, column), then the bias.
    Graph(Tensor),
    Packed(PackedDepthwise),
}

// === impl DepthwiseConv2d ===

impl DepthwiseConv2d {
    /// He initialisation scaled by `gain` (1 in front of a ReLU).
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        channels: usize,
        window: Window2d,
        gain: f64,
    ) -> std::result::Result<Self, ModelError> {
        let positions = window.positions();
        let init = Init::Normal(gain * (2.0 / positions as f64).sqrt());
        let name = format!("{name}.weight");
        let weight = params.get(&name, &[positions + 1, channels], init)?;
        Self::from_weight(weight, window, params.mode()).map_err(ModelError::compute(name))
    }

    /// From weights `[positions + 1, channels]`.
    pub(crate) fn from_weight(weight: Tensor, window: Window2d, mode: ComputeMode) -> Result<Self> {
        let channels = weight.dim(1)?;
        let weights = match mode {
            ComputeMode::Graph => DepthwiseWeights::Graph(weight),
            ComputeMode::Packed => with_values(&weight, |values| {
                DepthwiseWeights::Packed(PackedDepthwise::new(values, channels))
            })?,
        };
        Ok(Self { weights, window })
    }

    pub(crate) fn forward(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        match &self.weights {
            DepthwiseWeights::Graph(weight) => {
                let x = x.as_tensor()?.to_dtype(weight.dtype())?;
                activate(depthwise(&x, weight, self.window)?, activation).map(Flow::Graph)
            }
            DepthwiseWeights::Packed(packed) => {
                let result = packed.forward(x.as_map()?, self.window, activation);
                result.map(Flow::Packed).map_err(kernel_error)
            }
        }
    }
}
