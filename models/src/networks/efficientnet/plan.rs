//! The units of an EfficientNet.

use switchyard_kernels::Activation;

use super::spec::EfficientNetSpec;
use crate::error::ModelError;
use crate::networks::inverted::{
    BlockShape, COLOURS, Gate, Gates, HeadPlan, InvertedNetwork, InvertedPlan, PlanBuilder,
    TensorNaming, check_images,
};
use crate::networks::spec::{BadHyperParameter, Spec};
use crate::networks::staged::StagedModel;
use crate::weights::params::Params;

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
pub(super) fn of(spec: &EfficientNetSpec) -> InvertedPlan {
    let (scale, activation) = (spec.scale, Activation::Silu);
    let stem = scale.channels(STEM);
    let mut builder = PlanBuilder::new(spec.layout, spec.padding, spec.size, stem, activation);
    for (group, [expansion, kernel, stride, channels, blocks]) in GROUPS.into_iter().enumerate() {
        for index in 0..scale.blocks(blocks) {
            let input = builder.channels();
            builder.inverted(&BlockShape {
                group,
                index: Some(index),
                kernel,
                stride: if index == 0 { stride } else { 1 },
                inner: input * expansion,
                output: scale.channels(channels),
                squeezed: Some((input / SQUEEZE).max(1)),
                activation,
            });
        }
    }
    let (last, classifier) = match spec.layout {
        TensorNaming::Timm => (["conv_head", "bn2"], "classifier"),
        TensorNaming::Torchvision => (["features.8.0", "features.8.1"], "classifier.1"),
    };
    let features = scale.channels(FEATURES);
    builder.conv(last, features, [1, 1], activation);
    InvertedPlan {
        units: builder.into_units(),
        head: HeadPlan {
            features,
            hidden: None,
            classifier: classifier.to_owned(),
            classes: spec.classes,
        },
        gates: Gates {
            squeezed: Activation::Silu,
            gate: Gate::Sigmoid,
        },
        epsilon: spec.epsilon(),
    }
}

// === impl EfficientNetSpec ===

impl EfficientNetSpec {
    /// Names and shapes of all tensors of its weights file.
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        of(self).tensors()
    }
}

impl Spec for EfficientNetSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![COLOURS, self.size, self.size]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![of(self).stages(self.slices).len()]
    }

    fn check(&self) -> Result<(), BadHyperParameter> {
        check_images(self.size, self.slices, self.layout, self.padding)
    }

    fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        let network = InvertedNetwork::new(params, &of(self), self.size, self.slices)?;
        Ok(Box::new(network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::efficientnet::spec::EfficientNetScale;
    use crate::networks::inverted::{ImagePadding, UnitLayers};

    fn plan(scale: EfficientNetScale) -> InvertedPlan {
        of(&EfficientNetSpec {
            scale,
            size: 224,
            classes: 1000,
            layout: TensorNaming::Timm,
            padding: ImagePadding::Centred,
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
            let convolved: Vec<[usize; 2]> = plan
                .units
                .iter()
                .filter_map(|unit| match &unit.layers {
                    UnitLayers::Conv(conv) => Some(conv.channels),
                    _ => None,
                })
                .collect();
            let found = (
                convolved[0][1],
                convolved[1][0],
                plan.head.features,
                plan.units.len() - 2,
            );
            assert_eq!(found, (stem, last, features, blocks), "{scale:?}");
        }
    }

    #[test]
    fn no_stage_costs_twice_the_mean() {
        for scale in [EfficientNetScale::B0, EfficientNetScale::B4] {
            let plan = plan(scale);
            let stages = plan.stages(6);
            let costs: Vec<f64> = stages
                .iter()
                .map(|stage| {
                    plan.units[stage.units.clone()]
                        .iter()
                        .map(|unit| unit.cost)
                        .sum()
                })
                .collect();
            let mean = costs.iter().sum::<f64>() / costs.len() as f64;
            assert!(costs.iter().all(|&cost| cost < 2.0 * mean), "{costs:?}");
        }
    }
}
