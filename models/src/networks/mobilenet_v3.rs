//! MobileNetV3 large and small with public weights, in timm's or torchvision's naming (Howard et al.,
//! "Searching for MobileNetV3", 2019).
//!
//! Inverted residual blocks with ReLU first and hard-swish later, squeeze-and-excitation in some of
//! them, and a head of two layers. [`mobilenet`](super::mobilenet) is a network over audio.

mod plan;
mod spec;

pub use self::spec::{MobileNetV3Scale, MobileNetV3Spec};
