//! Hyper-parameters of a residual network, and what follows from them.

use serde::{Deserialize, Serialize};

use super::ResNet2d;
use crate::architecture::{BadHyperParameter, Spec, check_depth, check_size};
use crate::error::ModelError;
use crate::model::StagedModel;
use crate::params::Params;
use crate::slicing::stage_ends;
use crate::unfold2d::Window2d;

/// Channels of an image.
pub(super) const COLOURS: usize = 3;

/// Largest number of lines and columns of an image.
const SIZE_MAX: usize = 1024;

/// Hyper-parameters of [`ResNet2d`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNet2dSpec {
    /// Lines and columns of an image. A request is `[3, size, size]`, normalised as the weights
    /// were trained.
    pub size: usize,
    /// Classes told apart.
    pub classes: usize,
    /// How the weights file names and lays out its tensors.
    pub layout: TensorLayout,
    /// What a residual block is made of.
    pub block: BlockKind,
    /// Groups after which there is a head, counted from 1; the last one must be among them.
    pub exits: Vec<usize>,
    /// Stages to cut the network into at least, if it has that many blocks.
    #[serde(default = "default_slices")]
    pub slices: usize,
    /// First convolution; part of stage 0.
    pub stem: StemSpec,
    /// Groups of blocks in order.
    pub groups: Vec<GroupSpec>,
}

/// Naming and layout of a weights file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorLayout {
    /// What training writes: matrices that hold their biases, no normalisation.
    Switchyard,
    /// torchvision's and timm's names, with batch normalisation. The final head is `fc`, others
    /// `exit1.fc` after the first group and so on.
    Torchvision,
}

/// What a residual block is made of.
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
pub struct StemSpec {
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
pub struct GroupSpec {
    /// Channels inside a block; a bottleneck's output has four times as many.
    pub channels: usize,
    /// Residual blocks.
    pub blocks: usize,
    /// Positions between windows of the first block's 3 x 3 convolution.
    pub stride: usize,
}

/// One block and where it lies.
pub(super) struct Place {
    /// Group and block within it, from 0.
    pub(super) group: usize,
    pub(super) block: usize,
    /// Channels that come in, and inside.
    pub(super) input: usize,
    pub(super) channels: usize,
    pub(super) stride: usize,
    /// Most activations per image at any point of the block.
    pub(super) width: usize,
    /// Multiply-adds per image.
    cost: f64,
}

/// One convolution of a block.
pub(super) struct ConvShape {
    pub(super) channels: [usize; 2],
    pub(super) window: Window2d,
}

// === impl ResNet2dSpec ===

impl ResNet2dSpec {
    /// Every block in order.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut side = self.stem_side();
        if self.stem.pool {
            side = side.div_ceil(2);
        }
        let mut input = self.stem.channels;
        let mut places = Vec::new();
        for (group, spec) in self.groups.iter().enumerate() {
            for block in 0..spec.blocks {
                let stride = if block == 0 { spec.stride } else { 1 };
                places.push(self.place([group, block], input, stride, side));
                input = self.block.output(spec.channels);
                side = side.div_ceil(stride);
            }
        }
        places
    }

    fn place(&self, [group, block]: [usize; 2], input: usize, stride: usize, side: usize) -> Place {
        let mut place = Place {
            group,
            block,
            input,
            channels: self.groups[group].channels,
            stride,
            width: side * side * input,
            cost: 0.0,
        };
        let mut side = side;
        for shape in self.block.convs(&place) {
            side = side.div_ceil(shape.window.stride[0]);
            let [from, to] = shape.channels;
            place.width = place.width.max(side * side * to);
            place.cost += (side * side) as f64 * (shape.window.positions() * from * to) as f64;
        }
        place
    }

    /// Where each stage ends, in blocks.
    pub(super) fn stage_ends(&self) -> Vec<usize> {
        let mut costs: Vec<f64> = self.places().iter().map(|place| place.cost).collect();
        let taps = self.stem.kernel * self.stem.kernel * COLOURS;
        costs[0] += self.stem_width() as f64 * taps as f64;
        let exits: Vec<usize> = self
            .exits
            .iter()
            .map(|&group| self.blocks_through(group))
            .collect();
        stage_ends(&costs, &exits, self.slices)
    }

    /// For each exit, how many stages run before it.
    pub(super) fn exits_after(&self) -> Vec<usize> {
        let ends = self.stage_ends();
        let stages_through = |group| ends.partition_point(|&end| end <= self.blocks_through(group));
        self.exits
            .iter()
            .map(|&group| stages_through(group))
            .collect()
    }

    /// Activations per image behind the stem.
    pub(super) fn stem_width(&self) -> usize {
        self.stem_side() * self.stem_side() * self.stem.channels
    }

    fn stem_side(&self) -> usize {
        self.size.div_ceil(self.stem.stride)
    }

    fn blocks_through(&self, group: usize) -> usize {
        self.groups[..group].iter().map(|group| group.blocks).sum()
    }
}

impl Spec for ResNet2dSpec {
    fn samples(&self) -> usize {
        COLOURS.saturating_mul(self.size.saturating_mul(self.size))
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        self.exits_after()
    }

    fn check(&self) -> Result<(), BadHyperParameter> {
        let bad = |field: &str, reason: String| {
            let field = field.to_owned();
            Err(BadHyperParameter { field, reason })
        };
        if !(1..=SIZE_MAX).contains(&self.size) {
            return bad("size", format!("{} is not in 1..={SIZE_MAX}", self.size));
        }
        check_depth("slices", self.slices)?;
        check_size("stem.channels", self.stem.channels)?;
        check_size("stem.stride", self.stem.stride)?;
        check_size("stem.kernel", self.stem.kernel)?;
        if self.stem.kernel.is_multiple_of(2) {
            return bad("stem.kernel", format!("{} is not odd", self.stem.kernel));
        }
        check_depth("groups", self.groups.len())?;
        for (i, group) in self.groups.iter().enumerate() {
            check_size(&format!("groups[{i}].channels"), group.channels)?;
            check_depth(&format!("groups[{i}].blocks"), group.blocks)?;
            check_size(&format!("groups[{i}].stride"), group.stride)?;
        }
        let ascending = self.exits.is_sorted_by(|a, b| a < b);
        let groups = self.groups.len();
        if !ascending || self.exits.first() == Some(&0) || self.exits.last() != Some(&groups) {
            let reason = format!("{:?} must ascend from at least 1 to {groups}", self.exits);
            return bad("exits", reason);
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(ResNet2d::new(params, self)?))
    }
}

fn default_slices() -> usize {
    8
}

// === impl BlockKind ===

impl BlockKind {
    /// Channels that leave a block with `channels` inside.
    pub(super) fn output(self, channels: usize) -> usize {
        match self {
            Self::Basic => channels,
            Self::Bottleneck => channels * 4,
        }
    }

    /// The convolutions of a block in order.
    pub(super) fn convs(self, place: &Place) -> Vec<ConvShape> {
        let (input, channels, stride) = (place.input, place.channels, place.stride);
        let conv = |from, to, kernel, stride| ConvShape {
            channels: [from, to],
            window: Window2d::centred(kernel, stride),
        };
        match self {
            Self::Basic => vec![
                conv(input, channels, 3, stride),
                conv(channels, channels, 3, 1),
            ],
            Self::Bottleneck => vec![
                conv(input, channels, 1, 1),
                conv(channels, channels, 3, stride),
                conv(channels, self.output(channels), 1, 1),
            ],
        }
    }
}
