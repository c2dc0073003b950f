//! Hyper-parameters of a MobileNet.

use serde::{Deserialize, Serialize};

/// Hyper-parameters of [`MobileNet`](super::MobileNet).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetSpec {
    /// Samples of one input, 16,000 a second.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Channels of the first convolution.
    pub stem: usize,
    /// Factor by which a residual block is wider inside.
    pub expansion: usize,
    /// Groups after which there is a head, counted from 1; the last one must be among them.
    pub exits: Vec<usize>,
    /// Least number of stages, if the network has that many layers.
    pub slices: usize,
    /// Groups of blocks in order.
    pub groups: Vec<MobileNetGroup>,
}

/// Blocks of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetGroup {
    /// Channels between blocks.
    pub channels: usize,
    /// Residual blocks after the separable convolution.
    pub blocks: usize,
    /// Positions between windows of the separable convolution, in both directions.
    pub stride: usize,
}
