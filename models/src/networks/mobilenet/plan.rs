//! The layers of a MobileNet, their costs, and the stages they are cut into.

use super::spec::MobileNetSpec;
use crate::features::logmel::{self, BANDS};
use crate::networks::stages::{exits_after, stage_ends};

/// Side of every depthwise window, and of the stem's.
pub(super) const KERNEL: usize = 3;

/// Positions between windows of the stem, in both directions.
pub(super) const STEM_STRIDE: usize = 2;

/// Cost of the features of one frame, in multiply-adds of a convolution: 100 frames take as long as
/// two million.
const FRAME_COST: f64 = 2e4;

/// A layer that cannot be cut, by its position.
#[derive(Clone, Copy)]
pub(super) enum LayerKind {
    /// The first convolution, with the features before it.
    Stem,
    Separable {
        group: usize,
    },
    Block {
        group: usize,
        block: usize,
    },
}

/// A layer, its activations and its cost.
pub(super) struct LayerPlan {
    pub(super) kind: LayerKind,
    /// Most activations per input at any point of it.
    pub(super) width: usize,
    /// Multiply-adds per input.
    pub(super) cost: f64,
}

// === impl MobileNetSpec ===

impl MobileNetSpec {
    /// Every layer in order.
    pub(super) fn layer_plans(&self) -> Vec<LayerPlan> {
        let frames = logmel::frames(self.samples);
        let mut image = [frames, BANDS].map(|n| n.div_ceil(STEM_STRIDE));
        let mut area = image[0] * image[1];
        let taps = KERNEL * KERNEL;
        let mut layers = vec![LayerPlan {
            kind: LayerKind::Stem,
            width: area * self.stem,
            cost: frames as f64 * FRAME_COST + (area * taps * self.stem) as f64,
        }];
        for (group, spec) in self.groups.iter().enumerate() {
            let input = self.input(group);
            let before = area * input;
            image = image.map(|n| n.div_ceil(spec.stride));
            area = image[0] * image[1];
            layers.push(LayerPlan {
                kind: LayerKind::Separable { group },
                width: before.max(area * spec.channels),
                cost: area as f64 * (input * (taps + spec.channels)) as f64,
            });
            let inside = spec.channels * self.expansion;
            layers.extend((0..spec.blocks).map(|block| LayerPlan {
                kind: LayerKind::Block { group, block },
                width: area * inside,
                cost: area as f64 * inside as f64 * (2 * spec.channels + taps) as f64,
            }));
        }
        layers
    }

    /// Input channels of a group.
    pub(super) fn input(&self, group: usize) -> usize {
        match group {
            0 => self.stem,
            _ => self.groups[group - 1].channels,
        }
    }

    /// End of each stage, in layers.
    pub(super) fn stage_ends(&self) -> Vec<usize> {
        let costs: Vec<f64> = self.layer_plans().iter().map(|layer| layer.cost).collect();
        stage_ends(&costs, &self.layers_through_exits(), self.slices)
    }

    /// For each exit, how many stages run before it.
    pub(super) fn exits_after(&self) -> Vec<usize> {
        let ends = self.stage_ends();
        exits_after(&ends, &self.layers_through_exits())
    }

    /// For each exit, how many layers run before it.
    fn layers_through_exits(&self) -> Vec<usize> {
        self.exits.iter().map(|&n| self.layers_through(n)).collect()
    }

    /// Layers up to the end of the first `groups` groups.
    fn layers_through(&self, groups: usize) -> usize {
        let layers = self.groups[..groups].iter().map(|group| group.blocks + 1);
        1 + layers.sum::<usize>()
    }
}
