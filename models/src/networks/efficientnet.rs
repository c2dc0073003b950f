//! EfficientNet B0 to B7 with public weights, in timm's or torchvision's naming (Tan and Le,
//! "EfficientNet: rethinking model scaling for convolutional neural networks", 2019).
//!
//! A stem, inverted residual blocks with squeeze-and-excitation, a last pointwise convolution and a
//! pooled linear head. Batch normalisation is folded while the weights load. A block cannot be cut;
//! blocks are grouped into stages of similar cost. Weights that TensorFlow trained (timm's `tf_`)
//! pad images unevenly and are not supported.

mod excite;
mod network;
mod plan;
mod spec;
mod tensors;

pub use self::network::EfficientNet;
pub use self::spec::{EfficientNetScale, EfficientNetSpec, TensorNaming};
