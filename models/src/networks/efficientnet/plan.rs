//! The units of an EfficientNet, and their costs.

use super::spec::EfficientNetSpec;
use crate::networks::stages::stage_ends;

/// Channels of an image.
pub(super) const COLOURS: usize = 3;

/// Channels behind the stem and the last convolution of B0.
const STEM: usize = 32;
const FEATURES: usize = 1280;

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

/// The network, unit by unit.
pub(super) struct EfficientNetPlan {
    pub(super) units: Vec<UnitPlan>,
    /// Channels in front of the head.
    pub(super) features: usize,
}

/// A part of the network that cannot be cut.
pub(super) struct UnitPlan {
    /// Input and output channels.
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    /// Shape of an inverted residual block; `None` for the stem and the last convolution.
    pub(super) block: Option<MbConvShape>,
    /// Most activations per image at any point of it.
    pub(super) width: usize,
    /// Multiply-adds per image.
    cost: f64,
}

/// Shape of an inverted residual block.
#[derive(Clone, Copy)]
pub(super) struct MbConvShape {
    /// Group and block within it, from 0.
    pub(super) group: usize,
    pub(super) index: usize,
    /// Channels inside, and of the squeeze.
    pub(super) inner: usize,
    pub(super) squeezed: usize,
}

// === impl EfficientNetPlan ===

impl EfficientNetPlan {
    pub(super) fn new(spec: &EfficientNetSpec) -> Self {
        let scale = spec.scale;
        let mut side = spec.size.div_ceil(2);
        let mut input = scale.channels(STEM);
        let mut units = vec![UnitPlan::conv([COLOURS, input], 3, 2, side)];
        for (group, [expansion, kernel, stride, channels, blocks]) in GROUPS.into_iter().enumerate()
        {
            let output = scale.channels(channels);
            for index in 0..scale.blocks(blocks) {
                let stride = if index == 0 { stride } else { 1 };
                let shape = MbConvShape {
                    group,
                    index,
                    inner: input * expansion,
                    squeezed: (input / SQUEEZE).max(1),
                };
                units.push(UnitPlan::block(
                    [input, output],
                    [kernel, stride],
                    shape,
                    side,
                ));
                side = side.div_ceil(stride);
                input = output;
            }
        }
        let features = scale.channels(FEATURES);
        units.push(UnitPlan::conv([input, features], 1, 1, side));
        Self { units, features }
    }

    /// Where each stage ends, in units.
    pub(super) fn stage_ends(&self, slices: usize) -> Vec<usize> {
        let costs: Vec<f64> = self.units.iter().map(|unit| unit.cost).collect();
        stage_ends(&costs, &[costs.len()], slices)
    }
}

// === impl UnitPlan ===

impl UnitPlan {
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
        shape: MbConvShape,
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
    use crate::networks::efficientnet::spec::{EfficientNetScale, TensorNaming};

    fn plan(scale: EfficientNetScale) -> EfficientNetPlan {
        EfficientNetPlan::new(&EfficientNetSpec {
            scale,
            size: 224,
            classes: 1000,
            layout: TensorNaming::Timm,
            slices: 8,
        })
    }

    #[test]
    fn b0_has_the_papers_cost() {
        let cost: f64 = plan(EfficientNetScale::B0)
            .units
            .iter()
            .map(|unit| unit.cost)
            .sum();
        // Table 2: 0.39 billion, without the head's million.
        assert!((0.38e9..0.39e9).contains(&cost), "{cost}");
    }

    #[test]
    fn channels_and_blocks_are_scaled_as_published() {
        // Of timm's models: channels behind the stem, of the last group and in front of the head.
        for (scale, stem, last, features, blocks) in [
            (EfficientNetScale::B0, 32, 320, 1280, 16),
            (EfficientNetScale::B1, 32, 320, 1280, 23),
            (EfficientNetScale::B2, 32, 352, 1408, 23),
            (EfficientNetScale::B3, 40, 384, 1536, 26),
            (EfficientNetScale::B4, 48, 448, 1792, 32),
            (EfficientNetScale::B5, 48, 512, 2048, 39),
            (EfficientNetScale::B6, 56, 576, 2304, 45),
            (EfficientNetScale::B7, 64, 640, 2560, 55),
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
        for scale in [EfficientNetScale::B0, EfficientNetScale::B4] {
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
