//! The units of an EfficientNetV2.

use switchyard_kernels::Activation;

use super::spec::{EfficientNetV2Scale, EfficientNetV2Spec};
use crate::error::ModelError;
use crate::networks::inverted::{
    BlockShape, COLOURS, Gate, Gates, HeadPlan, InvertedNetwork, InvertedPlan, PlanBuilder,
    TensorNaming, check_images,
};
use crate::networks::spec::{BadHyperParameter, Spec};
use crate::networks::staged::StagedModel;
use crate::weights::params::Params;

/// Channels in front of the head.
const FEATURES: usize = 1280;

/// Input channels per channel of the squeeze.
const SQUEEZE: usize = 4;

/// Lines and columns of a window.
const KERNEL: usize = 3;

/// Groups with fused blocks; they come first.
const FUSED: usize = 3;

/// Groups of blocks: expansion, stride of the first, channels, blocks (torchvision's
/// `_efficientnet_conf` and timm's `_gen_efficientnetv2_*`).
const S: [[usize; 4]; 6] = [
    [1, 1, 24, 2],
    [4, 2, 48, 4],
    [4, 2, 64, 4],
    [4, 2, 128, 6],
    [6, 1, 160, 9],
    [6, 2, 256, 15],
];
const M: [[usize; 4]; 7] = [
    [1, 1, 24, 3],
    [4, 2, 48, 5],
    [4, 2, 80, 5],
    [4, 2, 160, 7],
    [6, 1, 176, 14],
    [6, 2, 304, 18],
    [6, 1, 512, 5],
];
const L: [[usize; 4]; 7] = [
    [1, 1, 32, 4],
    [4, 2, 64, 7],
    [4, 2, 96, 7],
    [4, 2, 192, 10],
    [6, 1, 224, 19],
    [6, 2, 384, 25],
    [6, 1, 640, 7],
];

/// The network, unit by unit.
pub(super) fn of(spec: &EfficientNetV2Spec) -> InvertedPlan {
    let activation = Activation::Silu;
    let groups: &[[usize; 4]] = match spec.scale {
        EfficientNetV2Scale::S => &S,
        EfficientNetV2Scale::M => &M,
        EfficientNetV2Scale::L => &L,
    };
    // The stem is as wide as the first group.
    let stem = groups[0][2];
    let mut builder = PlanBuilder::new(spec.layout, spec.padding, spec.size, stem, activation);
    for (group, &[expansion, stride, output, blocks]) in groups.iter().enumerate() {
        for index in 0..blocks {
            let input = builder.channels();
            let is_fused = group < FUSED;
            let shape = BlockShape {
                group,
                index: Some(index),
                kernel: KERNEL,
                stride: if index == 0 { stride } else { 1 },
                inner: input * expansion,
                output,
                squeezed: (!is_fused).then_some((input / SQUEEZE).max(1)),
                activation,
            };
            match is_fused {
                true => builder.fused(&shape),
                false => builder.inverted(&shape),
            }
        }
    }
    let [conv, norm, classifier] = match spec.layout {
        TensorNaming::Timm => ["conv_head", "bn2", "classifier"].map(str::to_owned),
        TensorNaming::Torchvision => {
            let at = format!("features.{}", groups.len() + 1);
            [
                format!("{at}.0"),
                format!("{at}.1"),
                "classifier.1".to_owned(),
            ]
        }
    };
    builder.conv([&conv, &norm], FEATURES, [1, 1], activation);
    InvertedPlan {
        units: builder.into_units(),
        head: HeadPlan {
            features: FEATURES,
            hidden: None,
            classifier,
            classes: spec.classes,
        },
        gates: Gates {
            squeezed: Activation::Silu,
            gate: Gate::Sigmoid,
        },
        epsilon: spec.epsilon(),
    }
}

// === impl EfficientNetV2Spec ===

impl EfficientNetV2Spec {
    /// Names and shapes of all tensors of its weights file.
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        of(self).tensors()
    }
}

impl Spec for EfficientNetV2Spec {
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
    use crate::networks::inverted::ImagePadding;

    /// torchvision states 8.366, 24.582 and 56.08 billion multiply-adds at 384, 480 and 480.
    #[test]
    fn costs_are_those_that_torchvision_states() {
        for (scale, size, billions) in [
            (EfficientNetV2Scale::S, 384, 8.366),
            (EfficientNetV2Scale::M, 480, 24.582),
            (EfficientNetV2Scale::L, 480, 56.08),
        ] {
            let plan = of(&EfficientNetV2Spec {
                scale,
                size,
                classes: 1000,
                layout: TensorNaming::Torchvision,
                padding: ImagePadding::Centred,
                slices: 8,
            });
            let cost: f64 = plan.units.iter().map(|unit| unit.cost).sum();
            let apart = (cost / 1e9 / billions - 1.0).abs();
            assert!(apart < 0.01, "{scale:?}: {cost}");
        }
    }
}
