//! Inference on a CPU: convolutions on packed weights, with nothing allocated on the way.
//!
//! candle's operations are made for graphs and gradients: each allocates its result, a matrix
//! product packs its weights anew, and a convolution unfolds its input. A network that only
//! answers needs none of that. Here
//!
//! - [`dense`] is a convolution over all channels (and a linear map, a convolution of one
//!   position). Pictures are channels last, so what a window covers of a line is one contiguous
//!   run of memory: [`tile`] multiplies runs where they lie, and nothing is unfolded. Bias,
//!   residual and ReLU are applied while the sums are in registers.
//! - [`depthwise`] convolves each channel by itself, [`pooling`] and [`gates`] are the rest.
//! - [`scratch`] is where activations live: buffers that each thread keeps and reuses.
//! - [`map`] is a picture, a sequence or a row of features in such a buffer.
//!
//! Instructions are chosen as the process runs, by [`simd`]: AVX-512, AVX2 with FMA, or plain
//! code. All `unsafe` is there.
//!
//! Every output number is one sum in one order, over the positions of the window and then the
//! input's channels, whatever it is computed beside. So a row's answer is the same bits in any
//! batch, on any number of threads, sliced or not; it differs between instruction sets, and from
//! the product in [`convolve2d`](crate::convolve2d), by rounding.

pub(crate) mod dense;
pub(crate) mod depthwise;
pub(crate) mod gates;
pub(crate) mod map;
pub(crate) mod pooling;
pub(crate) mod scratch;
mod simd;
mod tile;

pub(crate) use self::dense::Dense;
pub(crate) use self::depthwise::Depthwise;
pub(crate) use self::map::Map;

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
