//! The fall recipe: MiniRocket on the accelerometer, three sizes of X3D on the clip, a fusion of
//! both.

use std::collections::BTreeMap;

use candle_core::Var;
use switchyard_models::Architecture;
use switchyard_models::ModelError;
use switchyard_models::card::{Datatype, Penalty, TensorCard};
use switchyard_models::features::Features;
use switchyard_models::networks::conv_chain::ConvSpec;
use switchyard_models::networks::fusion::{FusionSpec, SensorSpec};
use switchyard_models::networks::minirocket::{self, MiniRocketSpec};
use switchyard_models::networks::x3d::{TrunkSpec, TrunkStage, X3dSpec};

use crate::data::{Data, Sample};
use crate::fall::{AXES, CLASS_NAMES, CLASSES, FALL_SHARE, FRAMES, Fall, SAMPLES, SIDE};
use crate::train::recipe::{AppFacts, EvidenceRecipe, Recipe, TrainingScale, VariantRecipe};

/// Windows without a fall in training for one with a fall. The workload has 19. Trained on 19, a
/// network assigns hard windows to the frequent class, although the application exists to find
/// falls. Trained on 1, it raises too many alarms over the 19. At 2 it leans towards "no fall" if
/// it cannot tell, and still finds most falls; the cards have both recalls.
const DAILY_WEIGHT: f64 = 2.0;

const ACCELERATION: &str = "acceleration";
const CLIP: &str = "clip";

/// The fall detection application.
pub(super) struct FallRecipe;

impl Recipe for FallRecipe {
    fn facts(&self) -> AppFacts {
        let tensor = |name: &str, shape: &[usize]| TensorCard::fixed(name, Datatype::Fp32, shape);
        AppFacts {
            name: "fall",
            summary: "Fall detection: three seconds of one subject, 50 Hz accelerations in g and \
                      16 silhouettes in 0..1, to whether it fell",
            classes: CLASS_NAMES.map(str::to_owned).to_vec(),
            slo_ms: 150.0,
            penalty: Penalty::Sigmoid,
            workload_mix: vec![1.0 - FALL_SHARE, FALL_SHARE],
            inputs: vec![
                tensor(ACCELERATION, &[SAMPLES, AXES]),
                tensor(CLIP, &[FRAMES, SIDE, SIDE]),
            ],
        }
    }

    fn data(&self) -> &dyn Data {
        &Fall
    }

    fn variants(&self) -> Vec<VariantRecipe> {
        let variant = |name, summary, architecture, inputs, schedule| VariantRecipe {
            inputs,
            ..VariantRecipe::new(
                name,
                summary,
                architecture,
                vec![DAILY_WEIGHT, 1.0],
                schedule,
            )
        };
        let clip = || Some(vec![CLIP]);
        let mut rocket = variant(
            "minirocket",
            "MiniRocket: 2,016 fixed features of the accelerometer and a linear classifier",
            Architecture::MiniRocket(rocket()),
            Some(vec![ACCELERATION]),
            (2.0, 1e-3),
        );
        rocket.prepare = Some(prepare_rocket);
        vec![
            variant(
                "video-s",
                "X3D on 4 frames of 8 x 8, in two stages of one block",
                video(small(), vec![2]),
                clip(),
                (2.0, 4e-3),
            ),
            rocket,
            variant(
                "video-m",
                "X3D on 8 frames of 24 x 24",
                video(medium(), vec![3]),
                clip(),
                (2.5, 3e-3),
            ),
            variant(
                "fusion",
                "X3D on 8 frames and a convolutional network on the accelerometer, one head",
                Architecture::Fusion(FusionSpec {
                    classes: CLASSES,
                    sensor: sensor(),
                    trunk: medium(),
                }),
                None,
                (2.5, 3e-3),
            ),
            variant(
                "video-l",
                "X3D on all 16 frames, with an exit after two of its three stages",
                video(large(), vec![2, 3]),
                clip(),
                (1.7, 3e-3),
            ),
        ]
    }

    fn evidence(&self) -> EvidenceRecipe {
        EvidenceRecipe {
            features: Features::Motion,
            dimensions: 12,
            mix: vec![1.0; CLASSES],
        }
    }

    fn scale(&self) -> TrainingScale {
        TrainingScale {
            steps: 600,
            evidence_steps: 1500,
            batch: 32,
            validation_per_class: 1000,
            points_per_class: 1000,
        }
    }
}

fn prepare_rocket(vars: &BTreeMap<String, Var>, samples: &[Sample]) -> Result<(), ModelError> {
    let samples: Vec<&[f32]> = samples.iter().map(|sample| &*sample.values).collect();
    minirocket::prepare(&rocket(), vars, &samples)
}

fn rocket() -> MiniRocketSpec {
    MiniRocketSpec {
        length: SAMPLES,
        axes: AXES,
        classes: CLASSES,
        features_per_kernel: 24,
        stages: 2,
    }
}

fn video(trunk: TrunkSpec, exits: Vec<usize>) -> Architecture {
    Architecture::X3d(X3dSpec {
        classes: CLASSES,
        exits,
        trunk,
    })
}

fn small() -> TrunkSpec {
    TrunkSpec {
        every: 4,
        shrink: 3,
        ..trunk(6, vec![stage(6, 12, 1, 1), stage(12, 24, 1, 2)])
    }
}

fn medium() -> TrunkSpec {
    TrunkSpec {
        every: 2,
        ..trunk(
            8,
            vec![stage(8, 18, 1, 1), stage(16, 36, 2, 2), stage(32, 72, 2, 2)],
        )
    }
}

fn large() -> TrunkSpec {
    trunk(
        10,
        vec![
            stage(10, 24, 1, 1),
            stage(20, 48, 3, 2),
            stage(40, 96, 3, 2),
        ],
    )
}

/// A trunk that reads all of the clip.
fn trunk(stem: usize, stages: Vec<TrunkStage>) -> TrunkSpec {
    TrunkSpec {
        frames: FRAMES,
        side: SIDE,
        every: 1,
        shrink: 1,
        segments: 4,
        stem,
        stages,
    }
}

fn stage(channels: usize, inner: usize, blocks: usize, stride: usize) -> TrunkStage {
    TrunkStage {
        channels,
        inner,
        blocks,
        stride,
    }
}

/// Three convolutions, each halving the length.
fn sensor() -> SensorSpec {
    let layer = |channels| ConvSpec {
        channels,
        kernel: 8,
        stride: 2,
    };
    SensorSpec {
        length: SAMPLES,
        axes: AXES,
        layers: vec![layer(24), layer(32), layer(48)],
    }
}
