//! EfficientNet B0 to B7 with public weights, in timm's or torchvision's naming (Tan and Le,
//! "EfficientNet: rethinking model scaling for convolutional neural networks", 2019).
//!
//! A stem, inverted residual blocks with squeeze-and-excitation, a last pointwise convolution and a
//! pooled linear head.

mod plan;
mod spec;

pub use self::spec::{EfficientNetScale, EfficientNetSpec};
