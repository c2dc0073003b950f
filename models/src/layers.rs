//! The two layers everything is built from: a channels-last 1-D convolution and a linear layer.
//!
//! Activations are `[batch, length, channels]`; see `unfold` for why.

use candle_core::{Result, Tensor};

use crate::error::ModelError;
use crate::flow::{Flow, Mode, activate, other_mode};
use crate::kernels::map::with_numbers;
use crate::kernels::{Activation, Map, Packed};
use crate::params::{Init, Params};
use crate::pointwise::{add_bias, add_relu};
use crate::precision::Weights;
use crate::unfold::Window;
use crate::unfold2d::Window2d;

/// A product with weights and a bias, as its mode needs them.
pub(crate) enum Product {
    /// `[rows + 1, out]`, the last row the bias.
    Graph(Weights),
    Packed(Packed),
}

/// A "same" convolution with stride: `[batch, length, in]` to `[batch, ceil(length/stride), out]`.
pub(crate) struct Conv1d {
    /// Of `kernel * in` rows, ordered by (offset, input channel).
    product: Product,
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

// === impl Product ===

impl Product {
    /// Of `[rows + 1, out]`, the last row the bias, for `input` channels, and windows of pictures if
    /// it is a convolution of those.
    pub(crate) fn new(
        weights: Weights,
        window: Option<Window2d>,
        input: usize,
        mode: Mode,
    ) -> Result<Self> {
        match mode {
            Mode::Graph => Ok(Self::Graph(weights)),
            Mode::Packed => {
                let weight = weights.widen()?;
                let output = weight.dim(1)?;
                let (channels, precision) = ([input, output], weights.precision());
                with_numbers(&weight, |numbers| {
                    Packed::new(numbers, window, channels, precision).map(Self::Packed)
                })?
            }
        }
    }
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
        let weights = params.weights(&name, &[rows + 1, shape.output], init)?;
        let product = Product::new(weights, None, shape.input, params.mode());
        Ok(Self {
            product: product.map_err(ModelError::compute(name))?,
            window: Window {
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
        match (&self.product, x, onto) {
            (Product::Graph(weights), Flow::Graph(x), None) => {
                activate(self.plain(x, weights)?, activation).map(Flow::Graph)
            }
            (Product::Graph(weights), Flow::Graph(x), Some(Flow::Graph(onto))) => {
                add_relu(onto, &self.plain(x, weights)?).map(Flow::Graph)
            }
            (Product::Packed(dense), Flow::Packed(x), None) => {
                let window = self.window.over(x.dims()[2]);
                dense.forward(x, window, None, activation).map(Flow::Packed)
            }
            (Product::Packed(dense), Flow::Packed(x), Some(Flow::Packed(onto))) => {
                let window = self.window.over(x.dims()[2]);
                let result = dense.forward(x, window, Some(onto), activation);
                result.map(Flow::Packed)
            }
            _ => other_mode(),
        }
    }

    fn plain(&self, x: &Tensor, weights: &Weights) -> Result<Tensor> {
        let (batch, length, _) = x.dims3()?;
        let weight = weights.widen()?;
        let x = x.to_dtype(weight.dtype())?;
        self.window
            .unfold(&x)?
            .matmul(&weight)?
            .reshape((batch, self.window.count(length), ()))
    }
}

/// `[batch, in]` to `[batch, out]`.
pub(crate) struct Linear(Affine);

enum Affine {
    Graph { weights: Weights, bias: Tensor },
    Packed(Packed),
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

    /// With `weight` `[in, out]` and `bias` `[out]` made elsewhere.
    pub(crate) fn from_weights(weights: impl Into<Weights>, bias: Tensor) -> Self {
        Self(Affine::Graph {
            weights: weights.into(),
            bias,
        })
    }

    /// The same, packed where the mode asks for it.
    pub(crate) fn with_mode(weights: Weights, bias: Tensor, mode: Mode) -> Result<Self> {
        if mode == Mode::Graph {
            return Ok(Self::from_weights(weights, bias));
        }
        let weight = weights.widen()?;
        let (input, output) = weight.dims2()?;
        let rows = Tensor::cat(&[&weight, &bias.reshape((1, output))?], 0)?;
        let (channels, precision) = ([input, output], weights.precision());
        let dense = with_numbers(&rows, |rows| Packed::new(rows, None, channels, precision))??;
        Ok(Self(Affine::Packed(dense)))
    }

    /// `[batch, in]` to `[batch, out]`.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match &self.0 {
            Affine::Graph { weights, bias } => {
                let weight = weights.widen()?;
                add_bias(&x.to_dtype(weight.dtype())?.matmul(&weight)?, bias)
            }
            Affine::Packed(_) => {
                let (batch, width) = x.dims2()?;
                let rows = Flow::Packed(Map::of(x, [batch, 1, 1, width])?);
                self.forward_rows(&rows, Activation::None)?.into_rows()
            }
        }
    }

    /// The same, from rows of features to rows of features.
    pub(crate) fn forward_rows(&self, x: &Flow, activation: Activation) -> Result<Flow> {
        match (&self.0, x) {
            (Affine::Graph { .. }, Flow::Graph(x)) => {
                activate(self.forward(x)?, activation).map(Flow::Graph)
            }
            (Affine::Packed(dense), Flow::Packed(x)) => {
                let point = Window2d::centred(1, 1);
                dense.forward(x, point, None, activation).map(Flow::Packed)
            }
            _ => other_mode(),
        }
    }

    /// Mean over the length of `[batch, length, in]`, then the linear map.
    pub(crate) fn forward_pooled(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, _) = x.dims3()?;
        match &self.0 {
            Affine::Graph { .. } => {
                // As a product: candle reduces over a middle dimension element by element.
                let mean = Tensor::full(1.0 / length as f32, (batch, 1, length), x.device())?;
                self.forward(&mean.to_dtype(x.dtype())?.matmul(x)?.squeeze(1)?)
            }
            Affine::Packed(_) => {
                let rows = Mode::Packed.sequence(x)?.mean_pool()?;
                self.forward_rows(&rows, Activation::None)?.into_rows()
            }
        }
    }
}
