//! Inference on a CPU: convolutions on packed weights, with nothing allocated on the way.
//!
//! candle's operations are made for graphs and gradients: each allocates its result, a matrix
//! product packs its weights anew, and a convolution unfolds its input. A network that only
//! answers needs none of that. Here
//!
//! - [`dense`] is a convolution over all channels (and a linear map, a convolution of one
//!   position). Pictures are channels last, so what a window covers of a line is one contiguous
//!   run of memory: [`tile`] multiplies runs where they lie, and nothing is unfolded. Bias,
//!   residual and ReLU are applied while the sums are in registers. What it multiplies are words
//!   of 32 bits, [`products`]: numbers, or pairs of [`bf16`].
//! - [`winograd`] computes some of them with fewer products.
//! - [`int8`] is the same in bytes, and [`Packed`] any of them; [`panels`] is how all go through
//!   their tiles.
//! - [`depthwise`] convolves each channel by itself, [`pooling`] and [`gates`] are the rest.
//! - [`scratch`] is where activations live: buffers that each thread keeps and reuses.
//! - [`map`] is a picture, a sequence or a row of features in such a buffer.
//!
//! Instructions are chosen as the process runs, by [`simd`]: AVX-512, AVX2 with FMA, or plain
//! code; by [`bytes`] for products of bytes, by [`products`] for those of bf16. All `unsafe` is
//! there.
//!
//! Every output number is one sum in one order, over the positions of the window and then the
//! input's channels (with [`winograd`], over the channels for each of 16 points and then those),
//! whatever it is computed beside. So a row's answer is the same bits in any
//! batch, on any number of threads, sliced or not; it differs between instruction sets, and from
//! the product in [`convolve2d`](crate::convolve2d), by rounding.

pub(crate) mod bf16;
mod blocks;
mod bytes;
mod dense;
pub(crate) mod depthwise;
pub(crate) mod gates;
mod instructions;
mod int8;
pub(crate) mod map;
mod panels;
pub(crate) mod pooling;
mod products;
pub(crate) mod scratch;
mod simd;
#[cfg(test)]
mod testing;
mod tile;
mod winograd;

use candle_core::Result;

use self::dense::{Dense, Words};
pub(crate) use self::depthwise::Depthwise;
pub use self::instructions::Instructions;
use self::int8::Int8Dense;
pub(crate) use self::map::Map;
use self::winograd::Winograd;
use crate::precision::Precision;
use crate::unfold2d::Window2d;

/// What follows a layer, number by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// Nothing.
    None,
    /// `max(x, 0)`.
    Relu,
    /// `x / (1 + exp(-x))`.
    Silu,
}

/// Weights of a convolution over all channels, packed.
#[derive(Debug)]
pub(crate) enum Packed {
    /// Of 32 bits, or of 16 as bf16.
    Floats(Dense),
    /// Of 32 bits, transformed.
    Transformed(Winograd),
    /// Of 8 bits.
    Int8(Int8Dense),
}

// === impl Packed ===

impl Packed {
    /// Packs `[rows + 1, output]`, the last row the bias, for `input` channels; `rows` is the
    /// positions of a window times those. The window is that of a convolution of pictures; what has
    /// none has windows of one line.
    ///
    /// # Errors
    /// There are too many rows for the precision, or no kernel for it.
    pub(crate) fn new(
        weight: &[f32],
        window: Option<Window2d>,
        [input, output]: [usize; 2],
        precision: Precision,
    ) -> Result<Self> {
        let shape = [window.map_or(1, |window| window.kernel[0]), input, output];
        match precision {
            Precision::F32 if window.is_some_and(|w| Winograd::suits(w, [input, output])) => {
                Ok(Self::Transformed(Winograd::new(weight, [input, output])))
            }
            Precision::F32 => Ok(Self::Floats(Dense::new(weight, shape, Words::F32))),
            Precision::Bf16 => Ok(Self::Floats(Dense::new(weight, shape, Words::Bf16))),
            Precision::Int8 => Int8Dense::new(weight, shape).map(Self::Int8),
            Precision::F16 => candle_core::bail!("no kernel multiplies weights of {precision}"),
        }
    }

    /// Convolves `x` with windows of this many positions; adds `residual`, which has the
    /// result's shape; applies `activation`.
    ///
    /// # Errors
    /// Shapes do not fit, or a picture with its padding is smaller than a window.
    pub(crate) fn forward(
        &self,
        x: &Map,
        window: Window2d,
        residual: Option<&Map>,
        activation: Activation,
    ) -> Result<Map> {
        match self {
            Self::Floats(dense) => dense.forward(x, window, residual, activation),
            Self::Transformed(winograd) => winograd.forward(x, window, residual, activation),
            Self::Int8(dense) => dense.forward(x, window, residual, activation),
        }
    }
}
