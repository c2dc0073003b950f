//! CPU kernels of the networks: convolutions on packed weights, with nothing allocated on the way.
//!
//! candle's operations are made for graphs and gradients: each allocates its result, a matrix
//! product packs its weights anew, and a convolution unfolds its input. Inference needs none of
//! that. Here
//!
//! - [`PackedConv`] convolves over all channels, and a linear map is a convolution of one position.
//!   Images are channels last, so the part of a line that a window covers is one contiguous run of
//!   memory: the kernel multiplies runs where they lie and does not unfold windows. Bias, residual
//!   and ReLU are applied while the sums are in registers. Weights have 32 bits, 16 (bf16) or 8.
//! - [`PackedDepthwise`] convolves each channel on its own.
//! - [`attention`], [`LstmRecurrence`], [`norm`], [`pooling`], [`frames`] and [`gates`] are the remaining
//!   operations of inference.
//! - [`spectrum`] computes features of sounds, [`rocket`] those of MiniRocket.
//! - A [`FeatureMap`] is a batch of images, sequences or feature vectors, in a [`Buffer`] that its
//!   thread keeps and reuses.
//! - [`Windows`] and [`plain`] are for training: windows as rows of a matrix, and depthwise
//!   convolutions with gradients.
//!
//! The process chooses its [`Instructions`] at run time: AVX-512, AVX2 with FMA, or plain code.
//! `simd` and the memory of weights hold all unsafe code.
//!
//! Every output value is one sum in one order, over the positions of the window and then the
//! input's channels. (Winograd's transforms sum over the channels for each of 16 points, and then
//! over the points.) So a row's result has the same bits in any batch, on any number of threads,
//! and whether the batch is sliced or not. It differs by rounding between instruction sets, and
//! from a matrix product over unfolded windows.
#![deny(unsafe_code)]

mod activation;
pub mod attention;
pub mod bf16;
mod convolution;
mod error;
pub mod frames;
mod functions;
pub mod gates;
mod memory;
pub mod norm;
pub mod plain;
pub mod pooling;
mod recurrence;
pub mod rocket;
mod simd;
pub mod spectrum;
#[cfg(test)]
mod testing;
mod unfold;
mod window;

pub use self::activation::{Activation, relu};
pub use self::convolution::{PackedConv, PackedDepthwise, PackedLinear, WeightFormat};
pub use self::error::KernelError;
pub use self::memory::{Buffer, FeatureMap, without_kept};
pub use self::recurrence::LstmRecurrence;
pub use self::simd::Instructions;
pub use self::unfold::Windows;
pub use self::window::{Padding, Window2d};
