//! Networks of inverted residual blocks over images, with public weights: the parts that
//! EfficientNet, EfficientNetV2 and MobileNetV3 share.
//!
//! Each of them is a plan: units with the names, shapes and windows of their layers, their costs and
//! a head. The network is made from the plan. A unit cannot be cut; units are grouped into stages of
//! similar cost. Batch normalisation is folded while the weights load.

mod builder;
mod layers;
mod network;
mod plan;

pub(crate) use self::builder::{BlockShape, PlanBuilder};
pub(crate) use self::network::{InvertedNetwork, check_images};
#[cfg(test)]
pub(crate) use self::plan::UnitLayers;
pub(crate) use self::plan::{COLOURS, Gate, Gates, HeadPlan, HiddenForm, HiddenPlan, InvertedPlan};
pub use self::plan::{ImagePadding, TensorNaming};
