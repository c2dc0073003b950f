//! The heart recipe: two plain networks and a residual one with exits.

use switchyard_models::Architecture;
use switchyard_models::card::{Datatype, Penalty, TensorCard};
use switchyard_models::features::Features;
use switchyard_models::networks::cnn1d::Cnn1dSpec;
use switchyard_models::networks::conv_chain::ConvSpec;
use switchyard_models::networks::resnet1d::{ResNet1dSpec, ResNet1dStage};

use crate::data::Data;
use crate::heart::{BeatClass, CLASSES, Heart, SAMPLES, workload_mix};
use crate::train::recipe::{AppFacts, EvidenceRecipe, Recipe, TrainingScale, VariantRecipe};

/// Normal beats in training for one of each other class. A network assigns beats that it cannot
/// tell apart to the more frequent class, and the workload is mostly normal.
const NORMAL_WEIGHT: f64 = 3.0;

/// The heart application.
pub(super) struct HeartRecipe;

impl Recipe for HeartRecipe {
    fn facts(&self) -> AppFacts {
        AppFacts {
            name: "heart",
            summary: "Heart monitoring: one beat of 187 samples at 125 Hz, in millivolts, to one \
                      of seven beat classes",
            classes: BeatClass::ALL
                .map(|class| class.letter().to_owned())
                .to_vec(),
            slo_ms: 150.0,
            penalty: Penalty::Sigmoid,
            workload_mix: workload_mix().to_vec(),
            inputs: vec![TensorCard::fixed("beat", Datatype::Fp32, &[SAMPLES])],
        }
    }

    fn data(&self) -> &dyn Data {
        &Heart
    }

    fn variants(&self) -> Vec<VariantRecipe> {
        let small = cnn(vec![conv(24), conv(32)]);
        let large = cnn(vec![conv(32), conv(48), conv(48), conv(64)]);
        let residual = Architecture::ResNet1d(ResNet1dSpec {
            samples: SAMPLES,
            classes: CLASSES,
            stem: conv(32),
            stages: vec![stage(32, 2), stage(48, 2), stage(64, 2)],
        });
        vec![
            variant(
                "cnn-small",
                "Two convolutions over an eighth of a second; for when there is no time",
                small,
                (3.0, 6e-3),
            ),
            variant(
                "cnn",
                "Four convolutions over a third of a second",
                large,
                (2.0, 3e-3),
            ),
            variant(
                "resnet",
                "Residual network of three stages, with an exit after each",
                residual,
                (1.0, 2e-3),
            ),
        ]
    }

    fn evidence(&self) -> EvidenceRecipe {
        EvidenceRecipe {
            features: Features::Raw,
            dimensions: 12,
            mix: vec![1.0; CLASSES],
        }
    }

    fn scale(&self) -> TrainingScale {
        TrainingScale {
            steps: 1600,
            evidence_steps: 3200,
            batch: 32,
            validation_per_class: 1000,
            points_per_class: 286,
        }
    }
}

fn variant(
    name: &'static str,
    summary: &'static str,
    architecture: Architecture,
    schedule: (f64, f64),
) -> VariantRecipe {
    let mut mix = vec![1.0; CLASSES];
    mix[BeatClass::Normal as usize] = NORMAL_WEIGHT;
    VariantRecipe::new(name, summary, architecture, mix, schedule)
}

fn cnn(layers: Vec<ConvSpec>) -> Architecture {
    Architecture::Cnn1d(Cnn1dSpec {
        samples: SAMPLES,
        classes: CLASSES,
        layers,
    })
}

fn conv(channels: usize) -> ConvSpec {
    ConvSpec {
        channels,
        kernel: 9,
        stride: 1,
    }
}

/// A stage at full length: the exits share the time resolution and lack context.
fn stage(channels: usize, blocks: usize) -> ResNet1dStage {
    ResNet1dStage {
        channels,
        blocks,
        kernel: 9,
        stride: 1,
    }
}
