//! Hyper-parameters of an EfficientNet, and the network that follows from them.

use serde::{Deserialize, Serialize};

use super::EfficientNet;
use crate::architecture::{BadHyperParameter, Spec, check_depth};
use crate::error::ModelError;
use crate::model::StagedModel;
use crate::params::Params;
use crate::slicing::stage_ends;

/// Channels of an image.
pub(super) const COLOURS: usize = 3;

/// Largest number of lines and columns of an image; B7's is 600.
const SIZE_MAX: usize = 1024;

/// Channels behind the stem and the last convolution of B0.
const STEM: usize = 32;
const FEATURES: usize = 1280;

/// Channels are rounded to multiples of this.
const DIVISOR: usize = 8;

/// Input channels per channel of the squeeze.
const SQUEEZE: usize = 4;

/// B0's groups of blocks: expansion, kernel, stride of the first, channels, blocks.
const GROUPS: [[usize; 5]; 7] = [
    [1, 3, 1, 16, 1],
    [6, 3, 2, 24, 2],
    [6, 5, 2, 40, 2],
    [6, 3, 2, 80, 3],
    [6, 5, 1, 112, 3],
    [6, 5, 2, 192, 4],
    [6, 3, 1, 320, 1],
];

/// Hyper-parameters of [`EfficientNet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNetSpec {
    /// Which of the family.
    pub scale: Scale,
    /// Lines and columns of an image. A request is `[3, size, size]`, normalised as the weights
    /// were trained.
    pub size: usize,
    /// Classes told apart.
    pub classes: usize,
    /// How the weights file names its tensors.
    pub layout: TensorNaming,
    /// Stages to cut the network into at least, if it has that many blocks.
    #[serde(default = "default_slices")]
    pub slices: usize,
}

/// Member of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the paper's own")]
pub enum Scale {
    B0,
    B1,
    B2,
    B3,
    B4,
    B5,
    B6,
    B7,
}

/// Naming of a weights file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorNaming {
    /// `conv_stem`, `blocks.0.0.conv_dw`, `classifier`.
    Timm,
    /// `features.0.0`, `features.1.0.block.0.0`, `classifier.1`.
    Torchvision,
}

/// The network, unit by unit.
pub(super) struct Plan {
    pub(super) units: Vec<Unit>,
    /// Channels in front of the head.
    pub(super) features: usize,
}

/// What cannot be cut.
pub(super) struct Unit {
    /// Channels that come in and go out.
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    /// What makes it an inverted residual block; the stem and the last convolution are none.
    pub(super) block: Option<BlockShape>,
    /// Most activations per image at any point of it.
    pub(super) width: usize,
    /// Multiply-adds per image.
    cost: f64,
}

/// Of an inverted residual block.
#[derive(Clone, Copy)]
pub(super) struct BlockShape {
    /// Group and block within it, from 0.
    pub(super) group: usize,
    pub(super) index: usize,
    /// Channels inside, and of the squeeze.
    pub(super) inner: usize,
    pub(super) squeezed: usize,
}

// === impl Scale ===

impl Scale {
    /// Widths and depths relative to B0's, in tenths (the paper's code, `efficientnet_params`).
    fn factors(self) -> (usize, usize) {
        match self {
            Self::B0 => (10, 10),
            Self::B1 => (10, 11),
            Self::B2 => (11, 12),
            Self::B3 => (12, 14),
            Self::B4 => (14, 18),
            Self::B5 => (16, 22),
            Self::B6 => (18, 26),
            Self::B7 => (20, 31),
        }
    }

    /// As the paper's code rounds: to the nearest multiple of 8, but never down by over a tenth.
    fn channels(self, of_b0: usize) -> usize {
        let tenths = of_b0 * self.factors().0;
        let half = 10 * DIVISOR / 2;
        let rounded = ((tenths + half) / (10 * DIVISOR) * DIVISOR).max(DIVISOR);
        if rounded * 100 < tenths * 9 {
            return rounded + DIVISOR;
        }
        rounded
    }

    fn blocks(self, of_b0: usize) -> usize {
        (of_b0 * self.factors().1).div_ceil(10)
    }
}

// === impl EfficientNetSpec ===

impl EfficientNetSpec {
    /// What the weights' own normalisation adds to a variance.
    pub(super) fn epsilon(&self) -> f64 {
        match (self.layout, self.scale) {
            (TensorNaming::Torchvision, Scale::B5 | Scale::B6 | Scale::B7) => 1e-3,
            _ => 1e-5,
        }
    }
}

impl Spec for EfficientNetSpec {
    fn samples(&self) -> usize {
        COLOURS.saturating_mul(self.size.saturating_mul(self.size))
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![Plan::new(self).stage_ends(self.slices).len()]
    }

    fn check(&self) -> Result<(), BadHyperParameter> {
        if !(1..=SIZE_MAX).contains(&self.size) {
            return Err(BadHyperParameter {
                field: "size".to_owned(),
                reason: format!("{} is not in 1..={SIZE_MAX}", self.size),
            });
        }
        check_depth("slices", self.slices)
    }

    fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(EfficientNet::new(params, self)?))
    }
}

fn default_slices() -> usize {
    8
}

// === impl Plan ===

impl Plan {
    pub(super) fn new(spec: &EfficientNetSpec) -> Self {
        let scale = spec.scale;
        let mut side = spec.size.div_ceil(2);
        let mut input = scale.channels(STEM);
        let mut units = vec![Unit::conv([COLOURS, input], 3, 2, side)];
        for (group, [expansion, kernel, stride, channels, blocks]) in GROUPS.into_iter().enumerate()
        {
            let output = scale.channels(channels);
            for index in 0..scale.blocks(blocks) {
                let stride = if index == 0 { stride } else { 1 };
                let shape = BlockShape {
                    group,
                    index,
                    inner: input * expansion,
                    squeezed: (input / SQUEEZE).max(1),
                };
                units.push(Unit::block([input, output], [kernel, stride], shape, side));
                side = side.div_ceil(stride);
                input = output;
            }
        }
        let features = scale.channels(FEATURES);
        units.push(Unit::conv([input, features], 1, 1, side));
        Self { units, features }
    }

    /// Where each stage ends, in units.
    pub(super) fn stage_ends(&self, slices: usize) -> Vec<usize> {
        let costs: Vec<f64> = self.units.iter().map(|unit| unit.cost).collect();
        stage_ends(&costs, &[costs.len()], slices)
    }
}

// === impl Unit ===

impl Unit {
    /// A convolution whose output has `side` lines and columns.
    fn conv([input, output]: [usize; 2], kernel: usize, stride: usize, side: usize) -> Self {
        let positions = side * side;
        Self {
            input,
            output,
            kernel,
            stride,
            block: None,
            width: positions * output,
            cost: (positions * kernel * kernel) as f64 * (input * output) as f64,
        }
    }

    /// A block whose input has `side` lines and columns.
    fn block(
        [input, output]: [usize; 2],
        [kernel, stride]: [usize; 2],
        shape: BlockShape,
        side: usize,
    ) -> Self {
        let (before, after) = (side * side, side.div_ceil(stride) * side.div_ceil(stride));
        let inner = shape.inner as f64;
        let expand = if shape.inner == input {
            0.0
        } else {
            before as f64 * input as f64 * inner
        };
        let rest = after as f64 * inner * (kernel * kernel + output) as f64;
        Self {
            input,
            output,
            kernel,
            stride,
            block: Some(shape),
            width: before * shape.inner,
            cost: expand + rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(scale: Scale) -> Plan {
        Plan::new(&EfficientNetSpec {
            scale,
            size: 224,
            classes: 1000,
            layout: TensorNaming::Timm,
            slices: 8,
        })
    }

    #[test]
    fn b0_has_the_papers_cost() {
        let cost: f64 = plan(Scale::B0).units.iter().map(|unit| unit.cost).sum();
        // Table 2: 0.39 billion, without the head's million.
        assert!((0.38e9..0.39e9).contains(&cost), "{cost}");
    }

    #[test]
    fn channels_and_blocks_are_scaled_as_published() {
        // Of timm's models: channels behind the stem, of the last group and in front of the head.
        for (scale, stem, last, features, blocks) in [
            (Scale::B0, 32, 320, 1280, 16),
            (Scale::B1, 32, 320, 1280, 23),
            (Scale::B2, 32, 352, 1408, 23),
            (Scale::B3, 40, 384, 1536, 26),
            (Scale::B4, 48, 448, 1792, 32),
            (Scale::B5, 48, 512, 2048, 39),
            (Scale::B6, 56, 576, 2304, 45),
            (Scale::B7, 64, 640, 2560, 55),
        ] {
            let plan = plan(scale);
            let found = (
                plan.units[0].output,
                plan.units[plan.units.len() - 1].input,
                plan.features,
                plan.units.len() - 2,
            );
            assert_eq!(found, (stem, last, features, blocks), "{scale:?}");
        }
    }

    #[test]
    fn no_stage_costs_twice_the_mean() {
        for scale in [Scale::B0, Scale::B4] {
            let plan = plan(scale);
            let ends = plan.stage_ends(6);
            let mut first = 0;
            let costs: Vec<f64> = ends
                .iter()
                .map(|&end| {
                    let cost = plan.units[first..end].iter().map(|unit| unit.cost).sum();
                    first = end;
                    cost
                })
                .collect();
            let mean = costs.iter().sum::<f64>() / costs.len() as f64;
            assert!(costs.iter().all(|&cost| cost < 2.0 * mean), "{costs:?}");
        }
    }
}
