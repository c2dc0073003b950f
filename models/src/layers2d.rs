//! Layers over pictures: convolutions, depthwise convolutions and pooling.
//!
//! Activations are `[batch, height, width, channels]`; see `unfold2d` for why. A clip's frames may
//! stand in for the height: a depthwise window of `[frames, 1]` convolves over time.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use crate::convolve2d::{composed, convolve2d};
use crate::depthwise::depthwise;
use crate::device::has_kernels;
use crate::error::ModelError;
use crate::flow::{Flow, Mode, activate, other_mode};
use crate::kernels::map::with_numbers;
use crate::kernels::{Activation, Depthwise};
use crate::layers::Product;
use crate::params::{Init, Params};
use crate::pointwise::{add_bias, add_relu};
use crate::precision::Weights;
use crate::unfold2d::{Window2d, contiguous};

/// A convolution over all channels: `[batch, height, width, in]` to
/// `[batch, lines, columns, out]`.
pub(crate) struct Conv2d {
    /// Of `positions * in` rows, ordered by (line, column, input channel).
    product: Product,
    window: Window2d,
}

/// A convolution of each channel by itself: `[batch, height, width, channels]` to
/// `[batch, lines, columns, channels]`.
pub(crate) struct DepthwiseConv2d {
    weights: DepthwiseWeights,
    window: Window2d,
}

enum DepthwiseWeights {
    /// `[positions + 1, channels]`: rows ordered by (line, column), then the bias.
    Graph(Tensor),
    Packed(Depthwise),
}

/// Largest number of each window and channel.
struct MaxPool(Window2d);

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

    /// With weights `[positions * in + 1, out]` made elsewhere.
    pub(crate) fn from_weights(
        input: usize,
        weights: Weights,
        window: Window2d,
        mode: Mode,
    ) -> Result<Self> {
        let product = Product::new(weights, Some(window), input, mode)?;
        Ok(Self { product, window })
    }

    pub(crate) fn forward(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        match (&self.product, x) {
            (Product::Graph(weights), Flow::Graph(x)) => {
                self.plain(x, weights, None, activation).map(Flow::Graph)
            }
            (Product::Packed(dense), Flow::Packed(x)) => {
                let result = dense.forward(x, self.window, None, activation);
                result.map(Flow::Packed)
            }
            _ => other_mode(),
        }
    }

    /// `onto + self(x)`, and what follows it.
    pub(crate) fn forward_onto(
        &self,
        x: &Flow,
        onto: &Flow,
        activation: Activation,
    ) -> Result<Flow> {
        match (&self.product, x, onto) {
            (Product::Graph(weights), Flow::Graph(x), Flow::Graph(onto)) => self
                .plain(x, weights, Some(onto), activation)
                .map(Flow::Graph),
            (Product::Packed(dense), Flow::Packed(x), Flow::Packed(onto)) => {
                let result = dense.forward(x, self.window, Some(onto), activation);
                result.map(Flow::Packed)
            }
            _ => other_mode(),
        }
    }

    fn plain(
        &self,
        x: &Tensor,
        weights: &Weights,
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

    /// With weights `[positions + 1, channels]` made elsewhere.
    pub(crate) fn from_weight(weight: Tensor, window: Window2d, mode: Mode) -> Result<Self> {
        let channels = weight.dim(1)?;
        let weights = match mode {
            Mode::Graph => DepthwiseWeights::Graph(weight),
            Mode::Packed => with_numbers(&weight, |numbers| {
                DepthwiseWeights::Packed(Depthwise::new(numbers, channels))
            })?,
        };
        Ok(Self { weights, window })
    }

    pub(crate) fn forward(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        match (&self.weights, x) {
            (DepthwiseWeights::Graph(weight), Flow::Graph(x)) => {
                let x = x.to_dtype(weight.dtype())?;
                activate(depthwise(&x, weight, self.window)?, activation).map(Flow::Graph)
            }
            (DepthwiseWeights::Packed(packed), Flow::Packed(x)) => {
                packed.forward(x, self.window, activation).map(Flow::Packed)
            }
            _ => other_mode(),
        }
    }
}

// === pooling ===

/// Mean over all positions: `[batch, height, width, channels]` to `[batch, channels]`.
pub(crate) fn mean_pool(x: &Tensor) -> Result<Tensor> {
    let (batch, height, width, channels) = x.dims4()?;
    let positions = height * width;
    // As a product: candle reduces over a middle dimension element by element.
    let mean = Tensor::full(1.0 / positions as f32, (batch, 1, positions), x.device())?;
    mean.to_dtype(x.dtype())?
        .matmul(&x.reshape((batch, positions, channels))?)?
        .squeeze(1)
}

/// Largest number of each window and channel, without a gradient:
/// `[batch, height, width, channels]` to `[batch, lines, columns, channels]`.
///
/// What lies outside the picture counts as 0, so that this is PyTorch's max pooling for inputs
/// that come from a ReLU.
pub(crate) fn max_pool(x: &Tensor, window: Window2d) -> Result<Tensor> {
    if has_kernels(x) {
        return x.contiguous()?.apply_op1_no_bwd(&MaxPool(window));
    }
    let taps = window.taps(x)?;
    let mut largest = taps[0].zeros_like()?;
    for tap in &taps {
        largest = largest.maximum(tap)?;
    }
    Ok(largest)
}

impl CustomOp1 for MaxPool {
    fn name(&self) -> &'static str {
        "max-pool"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (batch, height, width, channels) = layout.shape().dims4()?;
        let source = contiguous(storage, layout)?;
        let [lines, columns] = self.0.output(height, width)?;
        let mut largest = vec![0f32; batch * lines * columns * channels];
        let pictures = source.chunks_exact((height * width * channels).max(1));
        let outputs = largest.chunks_exact_mut((lines * columns * channels).max(1));
        for (from, to) in pictures.zip(outputs) {
            self.0
                .for_each_run([height, width], [lines, columns], |run| {
                    let onto = &mut to[run.window * channels..][..channels];
                    let values = &from[run.position * channels..][..run.count * channels];
                    for value in values.chunks_exact(channels) {
                        for (largest, value) in onto.iter_mut().zip(value) {
                            *largest = largest.max(*value);
                        }
                    }
                });
        }
        let shape = (batch, lines, columns, channels).into();
        Ok((CpuStorage::F32(largest), shape))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::*;
    use crate::unfold2d::Padding;

    fn assert_close(a: &Tensor, b: &Tensor, what: &str) {
        assert_eq!(a.dims(), b.dims(), "{what}");
        let numbers = |t: &Tensor| t.flatten_all().and_then(|t| t.to_vec1::<f32>()).unwrap();
        for (a, b) in numbers(a).iter().zip(numbers(b)) {
            assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{what}: {a} {b}");
        }
    }

    /// A window of one position takes the short way, which must be the same convolution.
    #[test]
    fn both_ways_of_a_single_position_are_the_same() {
        let x = Var::randn(0f32, 1.0, (2, 5, 4, 3), &Device::Cpu).unwrap();
        let weight = Var::randn(0f32, 1.0, (4, 6), &Device::Cpu).unwrap();
        let window = Window2d::centred(1, 1);
        let weights = Weights::from(weight.as_tensor().clone());
        let conv = Conv2d::from_weights(3, weights, window, Mode::Graph).unwrap();
        let flow = Flow::Graph(x.as_tensor().clone());
        let short = conv.forward(&flow, Activation::None).unwrap();
        let short = short.into_pictures().unwrap();
        let long = convolve2d(&x, &weight, window).unwrap();
        assert_close(&short, &long, "forward");
        let gradients = |y: &Tensor| y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        let (short, long) = (gradients(&short), gradients(&long));
        for var in [&x, &weight] {
            assert_close(short.get(var).unwrap(), long.get(var).unwrap(), "gradient");
        }
    }

    #[test]
    fn max_pool_takes_the_largest_of_each_window() {
        let x: Vec<f32> = (1..=16).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (1, 4, 4, 1), &Device::Cpu).unwrap();
        let pooled = max_pool(&x, Window2d::centred(3, 2)).unwrap();
        let rows = pooled.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(rows, [6., 8., 14., 16.]);
        let even = Window2d {
            kernel: [2, 2],
            stride: [2, 2],
            padding: Padding::default(),
        };
        let pooled = max_pool(&x, even).unwrap();
        let rows = pooled.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(rows, [6., 8., 14., 16.]);
    }

    #[test]
    fn mean_pool_averages_each_channel() {
        let x: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (1, 2, 3, 2), &Device::Cpu).unwrap();
        let pooled = mean_pool(&x).unwrap().to_vec2::<f32>().unwrap();
        assert!((pooled[0][0] - 5.0).abs() < 1e-6 && (pooled[0][1] - 6.0).abs() < 1e-6);
    }
}
