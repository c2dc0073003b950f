//! Hyper-parameters of a residual network.

use serde::{Deserialize, Serialize};

/// Hyper-parameters of [`ResNet2d`](super::ResNet2d).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet2dSpec {
    /// Lines and columns of an image. A request is `[3, size, size]`, normalised as the weights
    /// were trained.
    pub size: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Naming and layout of the tensors in the weights file.
    pub layout: TensorLayout,
    /// Kind of residual block.
    pub block: BlockKind,
    /// Groups after which there is a head, counted from 1; the last one must be among them.
    pub exits: Vec<usize>,
    /// Least number of stages, if the network has that many blocks.
    #[serde(default = "default_slices")]
    pub slices: usize,
    /// First convolution; part of stage 0.
    pub stem: ResNet2dStem,
    /// Groups of blocks in order.
    pub groups: Vec<ResNet2dGroup>,
}

/// Naming and layout of a weights file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorLayout {
    /// As training writes it: matrices that hold their biases, no normalisation.
    Switchyard,
    /// torchvision's and timm's names, with batch normalisation. The final head is `fc`, others are
    /// `exit1.fc` after the first group and so on.
    Torchvision,
}

/// Kind of residual block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    /// Two 3 x 3 convolutions.
    Basic,
    /// 1 x 1, 3 x 3 and 1 x 1, the last one four times as wide.
    Bottleneck,
}

/// The first convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet2dStem {
    /// Output channels.
    pub channels: usize,
    /// Lines and columns of a window; odd.
    pub kernel: usize,
    /// Positions between windows.
    pub stride: usize,
    /// Whether 3 x 3 max pooling with stride 2 follows. It cannot be trained through.
    pub pool: bool,
}

/// Residual blocks of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet2dGroup {
    /// Channels inside a block; a bottleneck's output has four times as many.
    pub channels: usize,
    /// Residual blocks.
    pub blocks: usize,
    /// Positions between windows of the first block's 3 x 3 convolution.
    pub stride: usize,
}

fn default_slices() -> usize {
    8
}
