//! A MobileNet over the log-mel image of a second of audio, time by frequency.
//!
//! A group of blocks starts with a depthwise separable convolution that reduces the image (Howard
//! et al., "MobileNets", 2017), followed by inverted residual blocks (Sandler et al.,
//! "MobileNetV2", 2018). There is no normalisation: the last convolution of a residual block starts
//! small instead, as in [`resnet1d`](super::resnet1d). `spec` holds the hyper-parameters, `plan`
//! cuts the network into stages.

mod network;
mod plan;
mod spec;

pub use self::network::MobileNet;
pub use self::spec::{MobileNetGroup, MobileNetSpec};

#[cfg(test)]
mod tests;
