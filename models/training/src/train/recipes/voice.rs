//! The voice recipe: an LSTM and two MobileNets over log-mel features.

use switchyard_models::Architecture;
use switchyard_models::card::{Datatype, Penalty, TensorCard};
use switchyard_models::features::Features;
use switchyard_models::networks::lstm::LstmSpec;
use switchyard_models::networks::mobilenet::{MobileNetGroup, MobileNetSpec};

use crate::data::Data;
use crate::train::recipe::{AppFacts, EvidenceRecipe, Recipe, TrainingScale, VariantRecipe};
use crate::voice::{CLASSES, Keyword, SAMPLES, Voice};

/// The voice application.
pub(super) struct VoiceRecipe;

impl Recipe for VoiceRecipe {
    fn facts(&self) -> AppFacts {
        AppFacts {
            name: "voice",
            summary: "Voice commands: one second of 16 kHz mono audio in [-1, 1] to one of six \
                      keywords",
            classes: Keyword::ALL
                .map(|keyword| keyword.word().to_owned())
                .to_vec(),
            slo_ms: 150.0,
            penalty: Penalty::Sigmoid,
            workload_mix: vec![1.0 / CLASSES as f64; CLASSES],
            inputs: vec![TensorCard::fixed("audio", Datatype::Fp32, &[SAMPLES])],
        }
    }

    fn data(&self) -> &dyn Data {
        &Voice
    }

    fn variants(&self) -> Vec<VariantRecipe> {
        let lstm = Architecture::Lstm(LstmSpec {
            samples: SAMPLES,
            classes: CLASSES,
            stack: 4,
            layers: vec![24, 24],
        });
        let small = mobilenet(16, vec![group(24, 1), group(48, 1)], vec![2], 2);
        let large = mobilenet(
            24,
            vec![group(32, 2), group(64, 2), group(96, 2)],
            vec![2, 3],
            4,
        );
        let variant = |name, summary, architecture, schedule| {
            VariantRecipe::new(name, summary, architecture, vec![1.0; CLASSES], schedule)
        };
        vec![
            variant(
                "lstm",
                "Two LSTM layers over 40 ms steps",
                lstm,
                (1.0, 4e-3),
            ),
            variant(
                "mobilenet-s",
                "Narrow MobileNet of two groups of blocks",
                small,
                (1.5, 4e-3),
            ),
            variant(
                "mobilenet",
                "MobileNet of three groups of blocks, with an exit after the second",
                large,
                (2.0, 3e-3),
            ),
        ]
    }

    fn evidence(&self) -> EvidenceRecipe {
        EvidenceRecipe {
            features: Features::LogMel,
            dimensions: 12,
            mix: vec![1.0; CLASSES],
        }
    }

    fn scale(&self) -> TrainingScale {
        TrainingScale {
            steps: 1600,
            evidence_steps: 1600,
            batch: 32,
            validation_per_class: 500,
            points_per_class: 333,
        }
    }
}

fn mobilenet(
    stem: usize,
    groups: Vec<MobileNetGroup>,
    exits: Vec<usize>,
    slices: usize,
) -> Architecture {
    Architecture::MobileNet(MobileNetSpec {
        samples: SAMPLES,
        classes: CLASSES,
        stem,
        expansion: 2,
        exits,
        slices,
        groups,
    })
}

/// A group that halves the image.
fn group(channels: usize, blocks: usize) -> MobileNetGroup {
    MobileNetGroup {
        channels,
        blocks,
        stride: 2,
    }
}
