//! The units of a MobileNetV3.

use switchyard_kernels::Activation;

use super::spec::{MobileNetV3Scale, MobileNetV3Spec};
use crate::error::ModelError;
use crate::networks::inverted::{
    BlockShape, COLOURS, Gate, Gates, HeadPlan, HiddenForm, HiddenPlan, InvertedNetwork,
    InvertedPlan, PlanBuilder, TensorNaming, check_images,
};
use crate::networks::spec::{BadHyperParameter, Spec};
use crate::networks::staged::StagedModel;
use crate::weights::params::Params;

/// Channels behind the stem.
const STEM: usize = 16;

/// Channels of the squeeze are a quarter of those inside, a multiple of this.
const DIVISOR: usize = 8;

const RE: Activation = Activation::Relu;
const HS: Activation = Activation::HardSwish;

/// Blocks of one group: kernel, stride, channels inside and behind, excitation, activation.
type Row = (usize, usize, usize, usize, bool, Activation);

/// Tables 1 and 2 of the paper, in timm's groups.
const LARGE: [&[Row]; 6] = [
    &[(3, 1, 16, 16, false, RE)],
    &[(3, 2, 64, 24, false, RE), (3, 1, 72, 24, false, RE)],
    &[
        (5, 2, 72, 40, true, RE),
        (5, 1, 120, 40, true, RE),
        (5, 1, 120, 40, true, RE),
    ],
    &[
        (3, 2, 240, 80, false, HS),
        (3, 1, 200, 80, false, HS),
        (3, 1, 184, 80, false, HS),
        (3, 1, 184, 80, false, HS),
    ],
    &[(3, 1, 480, 112, true, HS), (3, 1, 672, 112, true, HS)],
    &[
        (5, 2, 672, 160, true, HS),
        (5, 1, 960, 160, true, HS),
        (5, 1, 960, 160, true, HS),
    ],
];
const SMALL: [&[Row]; 5] = [
    &[(3, 2, 16, 16, true, RE)],
    &[(3, 2, 72, 24, false, RE), (3, 1, 88, 24, false, RE)],
    &[
        (5, 2, 96, 40, true, HS),
        (5, 1, 240, 40, true, HS),
        (5, 1, 240, 40, true, HS),
    ],
    &[(5, 1, 120, 48, true, HS), (5, 1, 144, 48, true, HS)],
    &[
        (5, 2, 288, 96, true, HS),
        (5, 1, 576, 96, true, HS),
        (5, 1, 576, 96, true, HS),
    ],
];

/// The network, unit by unit.
pub(super) fn of(spec: &MobileNetV3Spec) -> InvertedPlan {
    let (groups, features, hidden): (&[&[Row]], _, _) = match spec.scale {
        MobileNetV3Scale::Large => (&LARGE, 960, 1280),
        MobileNetV3Scale::Small => (&SMALL, 576, 1024),
    };
    let mut builder = PlanBuilder::new(spec.layout, spec.padding, spec.size, STEM, HS);
    let mut blocks = 0;
    for (group, rows) in groups.iter().enumerate() {
        for (index, &(kernel, stride, inner, output, excites, activation)) in
            rows.iter().enumerate()
        {
            // torchvision counts blocks without groups.
            let (group, index) = match spec.layout {
                TensorNaming::Timm => (group, Some(index)),
                TensorNaming::Torchvision => (blocks, None),
            };
            blocks += 1;
            builder.inverted(&BlockShape {
                group,
                index,
                kernel,
                stride,
                inner,
                output,
                squeezed: excites.then(|| squeezed(inner)),
                activation,
            });
        }
    }
    let timm = spec.layout == TensorNaming::Timm;
    let last = match timm {
        true => ["conv", "bn1"].map(|layer| format!("blocks.{}.0.{layer}", groups.len())),
        false => ["0", "1"].map(|layer| format!("features.{}.{layer}", blocks + 1)),
    };
    builder.conv([&last[0], &last[1]], features, [1, 1], HS);
    let (name, form, classifier) = match timm {
        true => ("conv_head", HiddenForm::Convolution, "classifier"),
        false => ("classifier.0", HiddenForm::Linear, "classifier.3"),
    };
    InvertedPlan {
        units: builder.into_units(),
        head: HeadPlan {
            features,
            hidden: Some(HiddenPlan {
                name: name.to_owned(),
                output: hidden,
                form,
                activation: HS,
            }),
            classifier: classifier.to_owned(),
            classes: spec.classes,
        },
        gates: Gates {
            squeezed: RE,
            gate: Gate::HardSigmoid,
        },
        epsilon: spec.epsilon(),
    }
}

/// Channels of a squeeze: rounded, but never down by more than a tenth.
fn squeezed(inner: usize) -> usize {
    let quarter = inner / 4;
    let rounded = ((quarter + DIVISOR / 2) / DIVISOR * DIVISOR).max(DIVISOR);
    match rounded * 10 < quarter * 9 {
        true => rounded + DIVISOR,
        false => rounded,
    }
}

// === impl MobileNetV3Spec ===

impl MobileNetV3Spec {
    /// Names and shapes of all tensors of its weights file.
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        of(self).tensors()
    }
}

impl Spec for MobileNetV3Spec {
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

    /// torchvision states 217 and 57 million multiply-adds.
    #[test]
    fn costs_are_those_that_torchvision_states() {
        for (scale, millions) in [
            (MobileNetV3Scale::Large, 217.0),
            (MobileNetV3Scale::Small, 57.0),
        ] {
            let plan = of(&MobileNetV3Spec {
                scale,
                size: 224,
                classes: 1000,
                layout: TensorNaming::Torchvision,
                padding: ImagePadding::Centred,
                slices: 6,
            });
            let cost: f64 = plan.units.iter().map(|unit| unit.cost).sum();
            let apart = (cost / 1e6 / millions - 1.0).abs();
            assert!(apart < 0.06, "{scale:?}: {cost}");
        }
    }
}
