//! Operations and layers that networks are built from.
//!
//! - [`flow`] holds the activations between layers: a tensor, or a map in reused memory. Networks
//!   are written once, over a [`Flow`](flow::Flow)
//! - [`layers`] are convolutions and linear maps with their weights, for either
//! - [`sequence`], [`convolve2d`], [`depthwise2d`], [`pointwise`], [`pooling`] and [`channels`] are
//!   operations on tensors. On a CPU they run code of this project, with gradients for training;
//!   elsewhere they are composed of candle's operations. [`device`] decides
//! - `cuda` has kernels for GPUs; `cuda_check` tests their source on a CPU
//! - [`tensors`] passes values between tensors and kernels, [`taps`] composes windows

pub(crate) mod attention;
pub(crate) mod channels;
pub(crate) mod convolve2d;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod cuda_check;
pub(crate) mod depthwise2d;
pub(crate) mod device;
pub(crate) mod flow;
pub(crate) mod layers;
pub(crate) mod pointwise;
pub(crate) mod pooling;
pub(crate) mod sequence;
pub(crate) mod taps;
pub(crate) mod tensors;
#[cfg(test)]
pub(crate) mod testing;
