//! What flows from layer to layer: tensors where a gradient or another device needs them, and
//! numbers in reused memory where neither does.
//!
//! Architectures are written once, over [`Flow`]; [`Mode`] is decided where parameters come from
//! (`params`), and layers pack their weights for it as they are made.

use candle_core::{Result, Tensor};

use crate::kernels::{Activation, Map, gates, pooling};
use crate::layers2d;
use crate::pointwise::relu;
use crate::unfold2d::Window2d;

/// How a network computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By candle's operations and ours with gradients: training, and every device but a CPU.
    Graph,
    /// By [`kernels`](crate::kernels), on packed weights.
    Packed,
}

/// Activations between two layers: pictures `[batch, height, width, channels]`, or a sequence
/// `[batch, length, channels]`, which as a [`Map`] has a height of 1.
pub(crate) enum Flow {
    /// In [`Mode::Graph`].
    Graph(Tensor),
    /// In [`Mode::Packed`].
    Packed(Map),
}

// === impl Mode ===

impl Mode {
    /// Pictures, channels last: `[batch, height, width, channels]`.
    pub(crate) fn pictures(self, x: &Tensor) -> Result<Flow> {
        match self {
            Self::Graph => Ok(Flow::Graph(x.clone())),
            Self::Packed => Map::of(x, x.dims4()?.into()).map(Flow::Packed),
        }
    }

    /// Pictures as clients send them, `[batch, channels * height * width]`, to channels last.
    pub(crate) fn planes(self, x: &Tensor, [channels, height, width]: [usize; 3]) -> Result<Flow> {
        let (batch, samples) = x.dims2()?;
        if samples != channels * height * width {
            candle_core::bail!(
                "input has {samples} samples, the model takes {channels} x {height} x {width}"
            );
        }
        match self {
            Self::Graph => x
                .reshape((batch, channels, height, width))?
                .permute((0, 2, 3, 1))?
                .contiguous()
                .map(Flow::Graph),
            Self::Packed => Map::of_planes(x, [batch, height, width, channels]).map(Flow::Packed),
        }
    }

    /// A sequence `[batch, length, channels]`.
    pub(crate) fn sequence(self, x: &Tensor) -> Result<Flow> {
        match self {
            Self::Graph => Ok(Flow::Graph(x.clone())),
            Self::Packed => {
                let (batch, length, channels) = x.dims3()?;
                Map::of(x, [batch, 1, length, channels]).map(Flow::Packed)
            }
        }
    }
}

// === impl Flow ===

impl Flow {
    /// `[batch, height, width, channels]`; of pictures.
    pub(crate) fn dims4(&self) -> Result<[usize; 4]> {
        match self {
            Self::Graph(x) => x.dims4().map(Into::into),
            Self::Packed(map) => Ok(map.dims()),
        }
    }

    /// The same numbers as pictures of another shape.
    pub(crate) fn reshape(self, dims: [usize; 4]) -> Result<Self> {
        match self {
            Self::Graph(x) => x.reshape(&dims).map(Self::Graph),
            Self::Packed(map) => map.reshape(dims).map(Self::Packed),
        }
    }

    /// A tensor `[batch, height, width, channels]`.
    pub(crate) fn into_pictures(self) -> Result<Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(map) => map.to_tensor(&map.dims()),
        }
    }

    /// A tensor `[batch, length, channels]`; of a sequence.
    pub(crate) fn into_sequence(self) -> Result<Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(map) => {
                let [batch, _, length, channels] = map.dims();
                map.to_tensor((batch, length, channels))
            }
        }
    }

    /// A tensor `[batch, channels]`; of rows of features.
    pub(crate) fn into_rows(self) -> Result<Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(map) => {
                let [batch, .., channels] = map.dims();
                map.to_tensor((batch, channels))
            }
        }
    }

    /// Mean over all positions of pictures: rows of features.
    pub(crate) fn mean_pool(&self) -> Result<Self> {
        match self {
            Self::Graph(x) => layers2d::mean_pool(x).map(Self::Graph),
            Self::Packed(map) => Ok(Self::Packed(pooling::mean(map))),
        }
    }

    /// Largest number of each window and channel; what lies outside the picture counts as 0.
    pub(crate) fn max_pool(&self, window: Window2d) -> Result<Self> {
        match self {
            Self::Graph(x) => layers2d::max_pool(x, window).map(Self::Graph),
            Self::Packed(map) => pooling::max(map, window).map(Self::Packed),
        }
    }

    /// `1 / (1 + exp(-x))`.
    pub(crate) fn sigmoid(self) -> Result<Self> {
        match self {
            Self::Graph(x) => candle_nn::ops::sigmoid(&x).map(Self::Graph),
            Self::Packed(mut map) => {
                gates::sigmoid(&mut map.numbers);
                Ok(Self::Packed(map))
            }
        }
    }

    /// `max(x, 0)`.
    pub(crate) fn relu(self) -> Result<Self> {
        match self {
            Self::Graph(x) => relu(&x).map(Self::Graph),
            Self::Packed(mut map) => {
                for number in map.numbers.iter_mut() {
                    *number = number.max(0.0);
                }
                Ok(Self::Packed(map))
            }
        }
    }
}

/// What follows a layer, of tensors.
pub(crate) fn activate(x: Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::None => Ok(x),
        Activation::Relu => relu(&x),
        Activation::Silu => x.silu(),
    }
}

/// The error that a layer made for one mode was given activations of the other.
pub(crate) fn other_mode<T>() -> Result<T> {
    candle_core::bail!("a layer meets activations of another mode")
}
