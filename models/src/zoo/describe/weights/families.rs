//! Networks of inverted residual blocks: each member of a family is compared.

use super::recognised::{Recognised, Shapes, has_exactly};
use crate::networks::architecture::Architecture;
use crate::networks::efficientnet::{EfficientNetScale, EfficientNetSpec};
use crate::networks::efficientnet_v2::{EfficientNetV2Scale, EfficientNetV2Spec};
use crate::networks::inverted::{ImagePadding, TensorNaming};
use crate::networks::mobilenet_v3::{MobileNetV3Scale, MobileNetV3Spec};

/// Least number of stages.
const SLICES: usize = 8;

/// The sizes of the papers.
const SCALES: [(EfficientNetScale, &str, usize); 8] = [
    (EfficientNetScale::B0, "b0", 224),
    (EfficientNetScale::B1, "b1", 240),
    (EfficientNetScale::B2, "b2", 260),
    (EfficientNetScale::B3, "b3", 300),
    (EfficientNetScale::B4, "b4", 380),
    (EfficientNetScale::B5, "b5", 456),
    (EfficientNetScale::B6, "b6", 528),
    (EfficientNetScale::B7, "b7", 600),
];
const V2_SCALES: [(EfficientNetV2Scale, &str, usize); 3] = [
    (EfficientNetV2Scale::S, "s", 384),
    (EfficientNetV2Scale::M, "m", 480),
    (EfficientNetV2Scale::L, "l", 480),
];
const V3_SCALES: [(MobileNetV3Scale, &str, usize); 2] = [
    (MobileNetV3Scale::Large, "large", 224),
    (MobileNetV3Scale::Small, "small", 224),
];

/// A member of a family, its names here and in timm, and its tensors.
struct Member {
    name: String,
    timm: String,
    architecture: Architecture,
    tensors: Vec<(String, Vec<usize>)>,
}

pub(super) fn inverted(shapes: &Shapes) -> Option<Recognised> {
    let (layout, naming, heads) = if shapes.contains_key("conv_stem.weight") {
        (TensorNaming::Timm, "timm", ["classifier.bias"].as_slice())
    } else {
        let heads = ["classifier.1.bias", "classifier.3.bias"].as_slice();
        (TensorNaming::Torchvision, "torchvision", heads)
    };
    let classes = *heads.iter().find_map(|head| shapes.get(*head))?.first()?;
    let member = members(layout, classes).find(|member| has_exactly(shapes, &member.tensors))?;
    let paddings = [member.timm.clone(), format!("tf_{}", member.timm)];
    Some(Recognised {
        name: member.name,
        naming,
        architecture: member.architecture,
        is_size_known: false,
        paddings: (layout == TensorNaming::Timm).then_some(paddings),
        notes: Vec::new(),
    })
}

fn members(layout: TensorNaming, classes: usize) -> impl Iterator<Item = Member> {
    let padding = ImagePadding::Centred;
    let first = SCALES.into_iter().map(move |(scale, name, size)| {
        let spec = EfficientNetSpec {
            scale,
            size,
            classes,
            layout,
            padding,
            slices: SLICES,
        };
        Member {
            name: format!("efficientnet {name}"),
            timm: format!("efficientnet_{name}"),
            tensors: spec.tensors(),
            architecture: Architecture::EfficientNet(spec),
        }
    });
    let second = V2_SCALES.into_iter().map(move |(scale, name, size)| {
        let spec = EfficientNetV2Spec {
            scale,
            size,
            classes,
            layout,
            padding,
            slices: SLICES,
        };
        Member {
            name: format!("efficientnet-v2 {name}"),
            timm: format!("efficientnetv2_{name}"),
            tensors: spec.tensors(),
            architecture: Architecture::EfficientNetV2(spec),
        }
    });
    let third = V3_SCALES.into_iter().map(move |(scale, name, size)| {
        let spec = MobileNetV3Spec {
            scale,
            size,
            classes,
            layout,
            padding,
            slices: SLICES,
        };
        Member {
            name: format!("mobilenet-v3 {name}"),
            timm: format!("mobilenetv3_{name}_100"),
            tensors: spec.tensors(),
            architecture: Architecture::MobileNetV3(spec),
        }
    });
    first.chain(second).chain(third)
}
