//! Residual networks over images, with exits: the family that EdgeServing schedules.
//!
//! A stem, groups of residual blocks of one width, and a pooled linear head after some of the
//! groups. The same code is ResNet-20/32/56 at CIFAR's size, trained here, and ResNet-50/101/152
//! with public weights. A block cannot be cut; blocks are grouped into stages of similar cost.
//!
//! Networks trained here have no normalisation: the last convolution of a block starts small, so a
//! block starts as the identity (Zhang et al., "Fixup Initialization", 2019). Public ones have
//! batch normalisation, which is folded while they load.

mod network;
mod plan;
mod spec;
mod tensors;

pub use self::network::ResNet2d;
pub use self::spec::{BlockKind, ResNet2dGroup, ResNet2dSpec, ResNet2dStem, TensorLayout};
