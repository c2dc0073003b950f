//! A convolution of images over all channels.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, Window2d};

use super::packing::ConvWeights;
use crate::error::ModelError;
use crate::ops::convolve2d::{composed, convolve2d};
use crate::ops::device::has_kernels;
use crate::ops::flow::Flow;
use crate::ops::pointwise::{activate, add_bias, add_relu};
use crate::weights::mode::ComputeMode;
use crate::weights::params::{Init, Params};
use crate::weights::product::ProductWeights;

/// `[batch, height, width, in]` to `[batch, lines, columns, out]`.
pub(crate) struct Conv2d {
    /// Of `positions * in` rows, ordered by (line, column, input channel).
    weights: ConvWeights,
    window: Window2d,
}

// === impl Conv2d ===

impl Conv2d {
    /// He initialisation scaled by `gain` (1 in front of a ReLU).
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        [input, output]: [usize; 2],
        window: Window2d,
        gain: f64,
    ) -> std::result::Result<Self, ModelError> {
        let rows = window.positions() * input;
        // The bias starts as small as a weight.
        let init = Init::Normal(gain * (2.0 / rows as f64).sqrt());
        let weights = params.weights(&format!("{name}.weight"), &[rows + 1, output], init)?;
        Self::from_weights(input, weights, window, params.mode()).map_err(ModelError::compute(name))
    }

    /// From weights `[positions * in + 1, out]`.
    pub(crate) fn from_weights(
        input: usize,
        weights: ProductWeights,
        window: Window2d,
        mode: ComputeMode,
    ) -> Result<Self> {
        let weights = ConvWeights::new(weights, Some(window), input, mode)?;
        Ok(Self { weights, window })
    }

    pub(crate) fn forward(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        self.compute(x, None, activation)
    }

    /// `onto + self(x)`, then the activation.
    pub(crate) fn forward_onto(
        &self,
        x: &Flow,
        onto: &Flow,
        activation: Activation,
    ) -> Result<Flow> {
        self.compute(x, Some(onto), activation)
    }

    fn compute(&self, x: &Flow, onto: Option<&Flow>, activation: Activation) -> Result<Flow> {
        let graph = |x: &Tensor, weights: &ProductWeights, onto: Option<&Tensor>| {
            self.plain(x, weights, onto, activation)
        };
        self.weights
            .forward(x, onto, activation, |_| self.window, graph)
    }

    fn plain(
        &self,
        x: &Tensor,
        weights: &ProductWeights,
        onto: Option<&Tensor>,
        activation: Activation,
    ) -> Result<Tensor> {
        let weight = weights.widen()?;
        let x = &x.to_dtype(weight.dtype())?;
        if !has_kernels(x) {
            return composed(x, &weight, self.window, onto, activation);
        }
        let sum = if self.window.is_identity() {
            let (batch, height, width, channels) = x.dims4()?;
            let product = x
                .reshape((batch * height * width, channels))?
                .matmul(&weight.narrow(0, 0, channels)?)?;
            add_bias(&product, &weight.get(channels)?)?.reshape((batch, height, width, ()))?
        } else {
            convolve2d(x, &weight, self.window)?
        };
        match (onto, activation) {
            (None, activation) => activate(sum, activation),
            (Some(onto), Activation::Relu) => add_relu(onto, &sum),
            (Some(onto), other) => activate((onto + sum)?, other),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::*;
    use crate::ops::testing::assert_close;

    /// A window of one position takes a shortcut, which must be the same convolution.
    #[test]
    fn the_shortcut_of_a_single_position_is_the_same_convolution() {
        let x = Var::randn(0f32, 1.0, (2, 5, 4, 3), &Device::Cpu).unwrap();
        let weight = Var::randn(0f32, 1.0, (4, 6), &Device::Cpu).unwrap();
        let window = Window2d::centred(1, 1);
        let weights = ProductWeights::from(weight.as_tensor().clone());
        let conv = Conv2d::from_weights(3, weights, window, ComputeMode::Graph).unwrap();
        let flow = Flow::Graph(x.as_tensor().clone());
        let short = conv.forward(&flow, Activation::None).unwrap();
        let short = short.into_images().unwrap();
        let long = convolve2d(&x, &weight, window).unwrap();
        assert_close(&short, &long, 1e-4, "forward");
        let gradients = |y: &Tensor| y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        let (short, long) = (gradients(&short), gradients(&long));
        for var in [&x, &weight] {
            let (short, long) = (short.get(var).unwrap(), long.get(var).unwrap());
            assert_close(short, long, 1e-4, "gradient");
        }
    }
}
