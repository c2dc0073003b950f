//! A convolution of a sequence, channels last.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, FeatureMap};

use super::packing::ConvWeights;
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::pointwise::{activate, add_relu};
use crate::ops::sequence::SequenceWindow;
use crate::weights::params::{Init, Params};
use crate::weights::product::ProductWeights;

/// A "same" convolution with stride: `[batch, length, in]` to `[batch, ceil(length/stride), out]`.
pub(crate) struct Conv1d {
    /// Of `kernel * in` rows, ordered by (offset, input channel).
    weights: ConvWeights,
    window: SequenceWindow,
}

/// Shape of a convolution. `kernel` must be a multiple of `stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conv1dShape {
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
        shape: Conv1dShape,
        gain: f64,
    ) -> std::result::Result<Self, ModelError> {
        let rows = shape.kernel * shape.input;
        // The bias starts as small as a weight.
        let init = Init::Normal(gain * (2.0 / rows as f64).sqrt());
        let name = format!("{name}.weight");
        let weights = params.weights(&name, &[rows + 1, shape.output], init)?;
        let weights = ConvWeights::new(weights, None, shape.input, params.mode());
        Ok(Self {
            weights: weights.map_err(ModelError::compute(name))?,
            window: SequenceWindow {
                kernel: shape.kernel,
                stride: shape.stride,
            },
        })
    }

    pub(crate) fn forward(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        self.compute(x, None, activation)
    }

    /// `relu(onto + self(x))`.
    pub(crate) fn forward_onto(&self, x: &Flow, onto: &Flow) -> Result<Flow> {
        self.compute(x, Some(onto), Activation::Relu)
    }

    fn compute(&self, x: &Flow, onto: Option<&Flow>, activation: Activation) -> Result<Flow> {
        let window = |x: &FeatureMap| self.window.over(x.dims()[2]);
        let graph = |x: &Tensor, weights: &ProductWeights, onto: Option<&Tensor>| {
            let sum = self.plain(x, weights)?;
            match onto {
                None => activate(sum, activation),
                Some(onto) => add_relu(onto, &sum),
            }
        };
        self.weights.forward(x, onto, activation, window, graph)
    }

    /// The convolution alone.
    fn plain(&self, x: &Tensor, weights: &ProductWeights) -> Result<Tensor> {
        let (batch, length, _) = x.dims3()?;
        let weight = weights.widen()?;
        let x = x.to_dtype(weight.dtype())?;
        self.window
            .unfold(&x)?
            .matmul(&weight)?
            .reshape((batch, self.window.count(length), ()))
    }
}
