//! Layers with weights: convolutions and linear maps.
//!
//! Sequences are `[batch, length, channels]`, images `[batch, height, width, channels]`. The frames
//! of a clip may stand for lines: a depthwise window of `[frames, 1]` convolves over time.

mod conv1d;
mod conv2d;
mod depthwise_conv2d;
mod layer_norm;
mod linear;
mod packing;

pub(crate) use self::conv1d::{Conv1d, Conv1dShape};
pub(crate) use self::conv2d::Conv2d;
pub(crate) use self::depthwise_conv2d::DepthwiseConv2d;
pub(crate) use self::layer_norm::ChannelNorm;
pub(crate) use self::linear::Linear;
