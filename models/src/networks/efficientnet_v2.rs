//! EfficientNetV2 S, M and L with public weights, in timm's or torchvision's naming (Tan and Le,
//! "EfficientNetV2: smaller models and faster training", 2021).
//!
//! The first groups have fused blocks, with a full convolution instead of a pointwise and a
//! depthwise one, and no squeeze-and-excitation.

mod plan;
mod spec;

pub use self::spec::{EfficientNetV2Scale, EfficientNetV2Spec};
