//! Hyper-parameters of a MobileNet, and how it is cut into stages.

use serde::{Deserialize, Serialize};

use super::{KERNEL, MobileNet};
use crate::architecture::{BadHyperParameter, Spec, check_depth, check_size};
use crate::error::ModelError;
use crate::logmel::{self, BANDS};
use crate::model::StagedModel;
use crate::params::Params;
use crate::slicing::stage_ends;

/// Positions between windows of the stem, in both directions.
pub(super) const STEM_STRIDE: usize = 2;

/// Time of the features of one frame, in multiply-adds of a convolution: 100 frames take as long
/// as two million.
const FRAME_COST: f64 = 2e4;

/// Hyper-parameters of [`MobileNet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetSpec {
    /// Samples of one input, 16,000 a second.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Channels of the first convolution.
    pub stem: usize,
    /// How many times wider a residual block is inside.
    pub expansion: usize,
    /// Groups after which there is a head, counted from 1; the last one must be among them.
    pub exits: Vec<usize>,
    /// Stages to cut the network into at least, if it has that many layers.
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

/// A layer that cannot be cut, by its place.
#[derive(Clone, Copy)]
pub(super) enum Unit {
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

/// A unit and what it takes.
pub(super) struct Place {
    pub(super) unit: Unit,
    /// Most activations per input at any point of it.
    pub(super) width: usize,
    /// Multiply-adds per input.
    cost: f64,
}

// === impl MobileNetSpec ===

impl MobileNetSpec {
    /// Every unit in order.
    pub(super) fn places(&self) -> Vec<Place> {
        let frames = logmel::frames(self.samples);
        let mut picture = [frames, BANDS].map(|n| n.div_ceil(STEM_STRIDE));
        let mut area = picture[0] * picture[1];
        let taps = KERNEL * KERNEL;
        let mut places = vec![Place {
            unit: Unit::Stem,
            width: area * self.stem,
            cost: frames as f64 * FRAME_COST + (area * taps * self.stem) as f64,
        }];
        for (group, spec) in self.groups.iter().enumerate() {
            let input = self.input(group);
            let before = area * input;
            picture = picture.map(|n| n.div_ceil(spec.stride));
            area = picture[0] * picture[1];
            places.push(Place {
                unit: Unit::Separable { group },
                width: before.max(area * spec.channels),
                cost: area as f64 * (input * (taps + spec.channels)) as f64,
            });
            let inside = spec.channels * self.expansion;
            places.extend((0..spec.blocks).map(|block| Place {
                unit: Unit::Block { group, block },
                width: area * inside,
                cost: area as f64 * inside as f64 * (2 * spec.channels + taps) as f64,
            }));
        }
        places
    }

    /// Channels that a group takes.
    pub(super) fn input(&self, group: usize) -> usize {
        match group {
            0 => self.stem,
            _ => self.groups[group - 1].channels,
        }
    }

    /// Where each stage ends, in units.
    pub(super) fn stage_ends(&self) -> Vec<usize> {
        let costs: Vec<f64> = self.places().iter().map(|place| place.cost).collect();
        let exits: Vec<usize> = self.exits.iter().map(|&n| self.units_through(n)).collect();
        stage_ends(&costs, &exits, self.slices)
    }

    /// For each exit, how many stages run before it.
    pub(super) fn exits_after(&self) -> Vec<usize> {
        let ends = self.stage_ends();
        let stages_through =
            |groups| ends.partition_point(|&end| end <= self.units_through(groups));
        self.exits.iter().map(|&n| stages_through(n)).collect()
    }

    /// Units up to the end of the first `groups` groups.
    fn units_through(&self, groups: usize) -> usize {
        let units = self.groups[..groups].iter().map(|group| group.blocks + 1);
        1 + units.sum::<usize>()
    }
}

impl Spec for MobileNetSpec {
    fn samples(&self) -> usize {
        self.samples
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        self.exits_after()
    }

    fn check(&self) -> Result<(), BadHyperParameter> {
        check_size("stem", self.stem)?;
        check_size("expansion", self.expansion)?;
        check_depth("slices", self.slices)?;
        check_depth("groups", self.groups.len())?;
        for (i, group) in self.groups.iter().enumerate() {
            check_size(&format!("groups[{i}].channels"), group.channels)?;
            check_depth(&format!("groups[{i}].blocks"), group.blocks)?;
            check_size(&format!("groups[{i}].stride"), group.stride)?;
        }
        let rising = self.exits.is_sorted_by(|a, b| a < b);
        let first = self.exits.first().is_some_and(|&group| group > 0);
        if !rising || !first || self.exits.last() != Some(&self.groups.len()) {
            return Err(BadHyperParameter {
                field: "exits".to_owned(),
                reason: format!(
                    "{:?} must rise from at least 1 to the {} groups",
                    self.exits,
                    self.groups.len()
                ),
            });
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(MobileNet::new(params, self)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn group(channels: usize, blocks: usize, stride: usize) -> MobileNetGroup {
        MobileNetGroup {
            channels,
            blocks,
            stride,
        }
    }

    fn spec() -> MobileNetSpec {
        MobileNetSpec {
            samples: 16_000,
            classes: 3,
            stem: 24,
            expansion: 2,
            groups: vec![group(32, 2, 2), group(64, 2, 2), group(96, 2, 2)],
            exits: vec![2, 3],
            slices: 4,
        }
    }

    #[test]
    fn stages_are_of_similar_cost_and_exits_end_them() {
        let spec = spec();
        let costs: Vec<f64> = spec.places().iter().map(|place| place.cost).collect();
        let total: f64 = costs.iter().sum();
        let mut first = 0;
        for end in spec.stage_ends() {
            let share = costs[first..end].iter().sum::<f64>() / total;
            assert!((0.1..0.45).contains(&share), "{first}..{end}: {share}");
            first = end;
        }
        let ends = spec.stage_ends();
        let exits = Spec::exits(&spec);
        // Stem, then three units per group.
        assert_eq!(ends[exits[0] - 1], 7);
        assert_eq!(exits[1], ends.len());
    }

    #[test]
    fn impossible_hyper_parameters_are_named() {
        let field = |spec: MobileNetSpec| spec.check().unwrap_err().field;
        let exits = |exits| MobileNetSpec { exits, ..spec() };
        let second = |second| MobileNetSpec {
            groups: vec![group(6, 1, 2), second],
            exits: vec![2],
            ..spec()
        };
        assert!(spec().check().is_ok());
        for wrong in [vec![], vec![0, 3], vec![3, 3], vec![3, 2], vec![2], vec![4]] {
            assert_eq!(field(exits(wrong)), "exits");
        }
        assert_eq!(
            field(MobileNetSpec {
                slices: 0,
                ..spec()
            }),
            "slices"
        );
        assert_eq!(field(second(group(0, 1, 1))), "groups[1].channels");
        assert_eq!(field(second(group(6, 0, 1))), "groups[1].blocks");
        assert_eq!(field(second(group(6, 1, 0))), "groups[1].stride");
    }
}
