//! The image recipe: three residual networks of one family, with an exit after every group.

use switchyard_models::Architecture;
use switchyard_models::card::{Datatype, Penalty, TensorCard};
use switchyard_models::features::Features;
use switchyard_models::networks::resnet2d::{
    BlockKind, ResNet2dGroup, ResNet2dSpec, ResNet2dStem, TensorLayout,
};

use crate::data::Data;
use crate::images::{CLASSES, COLOURS, Images, SIZE, class_name};
use crate::train::recipe::{AppFacts, EvidenceRecipe, Recipe, TrainingScale, VariantRecipe};

/// The image application. Networks without normalisation collapse at learning rates much above
/// these, most of all deep ones.
pub(super) struct ImagesRecipe;

impl Recipe for ImagesRecipe {
    fn facts(&self) -> AppFacts {
        AppFacts {
            name: "images",
            summary: "Image recognition: a 32 by 32 RGB picture, each colour from -1 to 1, to one \
                      of 24 figures and fillings",
            classes: (0..CLASSES).map(class_name).collect(),
            slo_ms: 150.0,
            penalty: Penalty::Sigmoid,
            workload_mix: vec![1.0 / CLASSES as f64; CLASSES],
            inputs: vec![TensorCard::fixed(
                "image",
                Datatype::Fp32,
                &[COLOURS, SIZE, SIZE],
            )],
        }
    }

    fn data(&self) -> &dyn Data {
        &Images
    }

    fn variants(&self) -> Vec<VariantRecipe> {
        vec![
            resnet(
                "resnet20",
                "Residual network of 9 blocks, with exits after 3, 6 and 9",
                3,
                (2.67, 1e-3),
            ),
            resnet(
                "resnet32",
                "Residual network of 15 blocks, with exits after 5, 10 and 15",
                5,
                (0.6, 1e-3),
            ),
            resnet(
                "resnet56",
                "Residual network of 27 blocks, with exits after 9, 18 and 27",
                9,
                (0.7, 8e-4),
            ),
        ]
    }

    /// Deep variants continue from shallow ones: a new block starts as nearly the identity, so a
    /// network with more blocks starts where the one with fewer ended.
    fn starts_from(&self, variant: &str) -> Option<&'static str> {
        match variant {
            "resnet32" => Some("resnet20"),
            "resnet56" => Some("resnet32"),
            _ => None,
        }
    }

    fn evidence(&self) -> EvidenceRecipe {
        EvidenceRecipe {
            features: Features::Figure,
            dimensions: 12,
            mix: vec![1.0; CLASSES],
        }
    }

    fn scale(&self) -> TrainingScale {
        TrainingScale {
            steps: 1500,
            evidence_steps: 6000,
            batch: 16,
            validation_per_class: 60,
            points_per_class: 80,
        }
    }
}

/// A network for images of CIFAR's size (He et al., "Deep Residual Learning for Image
/// Recognition", 2016, section 4.2): three groups of `blocks` basic blocks.
fn resnet(
    name: &'static str,
    summary: &'static str,
    blocks: usize,
    schedule: (f64, f64),
) -> VariantRecipe {
    let group = |channels, stride| ResNet2dGroup {
        channels,
        blocks,
        stride,
    };
    let architecture = Architecture::ResNet2d(ResNet2dSpec {
        size: SIZE,
        classes: CLASSES,
        layout: TensorLayout::Switchyard,
        block: BlockKind::Basic,
        exits: vec![1, 2, 3],
        slices: 6,
        stem: ResNet2dStem {
            channels: 16,
            kernel: 3,
            stride: 1,
            pool: false,
        },
        groups: vec![group(16, 1), group(32, 2), group(64, 2)],
    });
    VariantRecipe::new(name, summary, architecture, vec![1.0; CLASSES], schedule)
}
