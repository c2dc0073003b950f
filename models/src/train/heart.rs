//! The heart recipe: three variants, the evidence, the cards.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use candle_nn::loss::cross_entropy;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::evaluate;
use super::fit::{Schedule, fit, tensors};
use super::{Progress, TrainOptions, TrainReport, TrainedVariant};
use crate::architecture::Architecture;
use crate::card::{
    APP_CARD, AppCard, Datatype, ExitCard, Penalty, Provenance, SneakPeekCard, TensorCard,
    VARIANT_CARD, ValidationCard, VariantCard,
};
use crate::cnn1d::{Cnn1dSpec, ConvSpec};
use crate::confusion::Confusion;
use crate::error::ModelError;
use crate::evidence::{LABELS, POINTS, PROJECTION, SneakPeek};
use crate::heart::{Beat, BeatClass, CLASSES, Generator, Mix, SAMPLES, stratified};
use crate::layers::Linear;
use crate::params::{Init, Params, write_tensors};
use crate::resnet1d::{ResNet1dSpec, StageSpec};

/// Names of the variants, fastest first.
pub const HEART_VARIANTS: [&str; 3] = ["cnn-small", "cnn", "resnet"];

/// Name by which [`TrainOptions::variants`] asks for the evidence.
pub const SNEAKPEEK: &str = "sneakpeek";

const WEIGHTS: &str = "weights.safetensors";
const EVIDENCE: &str = "sneakpeek.safetensors";

/// Dimensions of the evidence's embedding.
const DIMENSIONS: usize = 12;
/// Width of the classifier that the embedding is trained with.
const PROBE_WIDTH: usize = 64;
/// Neighbours asked for, and Jeffreys' prior: SneakPeek's defaults.
const K: usize = 5;
const JEFFREYS: f64 = 0.5;

/// Normal beats in training for one of each other class. What a network cannot tell apart it gives
/// to the more frequent class, and the workload is mostly normal.
const NORMAL_WEIGHT: f64 = 3.0;

/// Streams drawn from the run's seed; beats of one are never beats of another.
#[derive(Clone, Copy)]
enum Stream {
    Training = 1,
    Validation = 2,
    Evidence = 3,
    Weights = 4,
}

/// How large a run is.
#[derive(Clone, Copy)]
struct Scale {
    /// Optimiser steps of the deepest variant.
    steps: u64,
    batch: usize,
    validation_per_class: usize,
    points_per_class: usize,
}

/// Trains the heart application into `options.out`: weights, cards, evidence.
///
/// The same seed and options give the same files on the same kind of CPU; other kinds may round
/// differently.
///
/// # Errors
/// An unknown variant is asked for, a file cannot be written, or a computation fails.
pub fn train_heart(
    options: &TrainOptions,
    progress: &dyn Progress,
) -> Result<TrainReport, ModelError> {
    let chosen = chosen_parts(options)?;
    let run = Run::new(options, progress);
    make_dir(&options.out)?;
    let mut variants = Vec::new();
    for name in HEART_VARIANTS.iter().filter(|name| chosen.contains(name)) {
        variants.push(run.variant(name)?);
    }
    let card_file = options.out.join(APP_CARD);
    let trained = chosen.contains(&SNEAKPEEK);
    let sneakpeek = if trained {
        Some(run.evidence()?)
    } else if card_file.is_file() {
        AppCard::read(&card_file)?.sneakpeek
    } else {
        None
    };
    write_card(&card_file, &run.app_card(sneakpeek.clone()))?;
    Ok(TrainReport {
        variants,
        sneakpeek_accuracy: sneakpeek.filter(|_| trained).map(|card| card.accuracy),
    })
}

fn chosen_parts(options: &TrainOptions) -> Result<Vec<&'static str>, ModelError> {
    let all = HEART_VARIANTS.into_iter().chain([SNEAKPEEK]);
    let Some(wanted) = &options.variants else {
        return Ok(all.collect());
    };
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !all.clone().any(|known| known == *name))
    {
        let known = all.collect::<Vec<_>>().join(", ");
        let reason = format!("no variant `{unknown}`; there are {known}");
        return Err(ModelError::Training(reason));
    }
    Ok(all
        .filter(|name| wanted.iter().any(|want| want == name))
        .collect())
}

/// One run: its options and its validation set.
struct Run<'a> {
    options: &'a TrainOptions,
    progress: &'a dyn Progress,
    scale: Scale,
    validation: Vec<Beat>,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn new(options: &'a TrainOptions, progress: &'a dyn Progress) -> Self {
        let scale = if options.quick {
            Scale {
                steps: 30,
                batch: 32,
                validation_per_class: 20,
                points_per_class: 20,
            }
        } else {
            Scale {
                steps: 1600,
                batch: 32,
                validation_per_class: 1000,
                points_per_class: 286,
            }
        };
        let seed = stream_seed(options.seed, Stream::Validation);
        Self {
            options,
            progress,
            scale,
            validation: stratified(seed, scale.validation_per_class),
        }
    }

    /// Training beats with `normal_weight` normal ones for one of each other class.
    fn training_data(&self, normal_weight: f64) -> Result<Generator, ModelError> {
        let seed = stream_seed(self.options.seed, Stream::Training);
        let mut weights = [1.0; CLASSES];
        weights[BeatClass::Normal as usize] = normal_weight;
        Ok(Generator::new(seed, Mix::try_new(weights)?))
    }

    fn fresh_params(&self) -> Params {
        let seed = stream_seed(self.options.seed, Stream::Weights);
        Params::fresh(Pcg64::seed_from_u64(seed))
    }

    /// Trains, measures and writes one variant.
    fn variant(&self, name: &str) -> Result<TrainedVariant, ModelError> {
        let (summary, architecture, effort) = recipe(name);
        let mut params = self.fresh_params();
        let model = architecture.build(&mut params)?;
        let parameters = params.count();
        let vars = params.into_vars();
        let schedule = Schedule {
            steps: self.scale.steps * effort.steps_factor,
            batch: self.scale.batch,
            peak_rate: effort.peak_rate,
        };
        // Deep supervision: the sum of the losses of all exits.
        let loss = |inputs: &Tensor, labels: &Tensor| {
            let mut x = inputs.clone();
            let mut sum = Tensor::zeros((), candle_core::DType::F32, &Device::Cpu)?;
            for stage in 0..model.stages() {
                x = model.run_stage(stage, &x)?;
                for (exit, _) in model
                    .exits()
                    .iter()
                    .enumerate()
                    .filter(|(_, after)| **after == stage + 1)
                {
                    sum = (sum + cross_entropy(&model.logits(exit, &x)?, labels)?)?;
                }
            }
            Ok(sum)
        };
        self.progress.begin(name, schedule.steps);
        let data = self.training_data(NORMAL_WEIGHT)?;
        let losses = fit(&vars, schedule, &data, self.progress, &loss)
            .map_err(ModelError::compute(format!("training {name}")))?;
        let confusions = evaluate::per_exit(model.as_ref(), &self.validation)
            .map_err(ModelError::compute(format!("evaluating {name}")))?;
        self.progress.end();

        let dir = self.options.out.join(name);
        make_dir(&dir)?;
        let weights = vars
            .iter()
            .map(|(name, var)| (name.clone(), var.as_tensor().clone()))
            .collect();
        write_tensors(&dir.join(WEIGHTS), &weights)?;
        let card = VariantCard {
            name: name.to_owned(),
            summary: summary.to_owned(),
            weights: WEIGHTS.to_owned(),
            parameters,
            max_batch: 32,
            stages: model.stages(),
            exits: exit_cards(model.exits(), &confusions),
            provenance: self.provenance(schedule, NORMAL_WEIGHT),
            architecture,
        };
        write_card(&dir.join(VARIANT_CARD), &card)?;
        Ok(TrainedVariant {
            name: name.to_owned(),
            parameters,
            exit_accuracies: confusions.iter().map(Confusion::accuracy).collect(),
            first_loss: losses.first,
            last_loss: losses.last,
        })
    }

    /// Trains the embedding jointly with a small classifier, embeds fresh beats and measures.
    fn evidence(&self) -> Result<SneakPeekCard, ModelError> {
        let what = || ModelError::compute("training the evidence");
        let mut params = self.fresh_params();
        let spread = Init::Normal((1.0 / SAMPLES as f64).sqrt());
        let projection = params.get(PROJECTION, &[SAMPLES, DIMENSIONS], spread)?;
        let hidden = Linear::new(&mut params, "probe.hidden", DIMENSIONS, PROBE_WIDTH)?;
        let output = Linear::new(&mut params, "probe.output", PROBE_WIDTH, CLASSES)?;
        let loss = |inputs: &Tensor, labels: &Tensor| {
            let embedded = inputs.matmul(&projection)?;
            let logits = output.forward(&hidden.forward(&embedded)?.relu()?)?;
            cross_entropy(&logits, labels)
        };
        let schedule = Schedule {
            steps: self.scale.steps * 2,
            batch: self.scale.batch,
            peak_rate: 3e-3,
        };
        self.progress.begin(SNEAKPEEK, schedule.steps);
        let vars = params.into_vars();
        let data = self.training_data(1.0)?;
        fit(&vars, schedule, &data, self.progress, &loss).map_err(what())?;
        self.progress.end();

        let seed = stream_seed(self.options.seed, Stream::Evidence);
        let beats = stratified(seed, self.scale.points_per_class);
        let file = self.options.out.join(EVIDENCE);
        write_evidence(&file, &projection, &beats)?;
        let sneakpeek = SneakPeek::open(&file, SAMPLES, CLASSES)?;
        let prior = vec![JEFFREYS; CLASSES];
        let confusion = evaluate::evidence(&sneakpeek, K, &prior, &self.validation);
        Ok(SneakPeekCard {
            file: EVIDENCE.to_owned(),
            k: K,
            prior,
            accuracy: rounded(confusion.accuracy()),
            recall: confusion.recall().into_iter().map(rounded).collect(),
            confusion: confusion.rows().to_vec(),
        })
    }

    fn provenance(&self, schedule: Schedule, normal_weight: f64) -> Provenance {
        let quick = if self.options.quick { " --quick" } else { "" };
        Provenance {
            command: format!("switchyard train heart --seed {}{quick}", self.options.seed),
            seed: self.options.seed,
            steps: schedule.steps,
            batch: schedule.batch,
            data: format!(
                "switchyard_models::heart, {normal_weight} normal beats to one of each other class"
            ),
        }
    }

    fn app_card(&self, sneakpeek: Option<SneakPeekCard>) -> AppCard {
        let tensor = |name: &str, datatype, width| TensorCard {
            name: name.to_owned(),
            datatype,
            shape: vec![width],
        };
        AppCard {
            name: "heart".to_owned(),
            summary: "Heart monitoring: one beat of 187 samples at 125 Hz, in millivolts, to one \
                      of seven beat classes"
                .to_owned(),
            classes: BeatClass::ALL
                .map(|class| class.letter().to_owned())
                .to_vec(),
            slo_ms: 150.0,
            penalty: Penalty::Sigmoid,
            workload_mix: Mix::workload().shares().map(rounded).to_vec(),
            inputs: vec![tensor("beat", Datatype::Fp32, SAMPLES)],
            outputs: vec![
                tensor("probabilities", Datatype::Fp32, CLASSES),
                tensor("label", Datatype::Int64, 1),
            ],
            validation: ValidationCard {
                samples: self.validation.len() as u64,
                frequencies: vec![rounded(1.0 / CLASSES as f64); CLASSES],
                seed: stream_seed(self.options.seed, Stream::Validation),
            },
            sneakpeek,
        }
    }
}

/// How hard a variant trains.
struct Effort {
    /// Steps relative to the run's scale: small networks are cheap and slow to settle.
    steps_factor: u64,
    peak_rate: f64,
}

fn recipe(name: &str) -> (&'static str, Architecture, Effort) {
    let conv = |channels, kernel, stride| ConvSpec {
        channels,
        kernel,
        stride,
    };
    let cnn = |layers: Vec<ConvSpec>| {
        Architecture::Cnn1d(Cnn1dSpec {
            samples: SAMPLES,
            classes: CLASSES,
            layers,
        })
    };
    match name {
        "cnn-small" => (
            "Two convolutions over an eighth of a second; for when there is no time",
            cnn(vec![conv(24, 9, 1), conv(32, 9, 1)]),
            Effort {
                steps_factor: 3,
                peak_rate: 6e-3,
            },
        ),
        "cnn" => (
            "Four convolutions over a third of a second",
            cnn(vec![
                conv(32, 9, 1),
                conv(48, 9, 1),
                conv(48, 9, 1),
                conv(64, 9, 1),
            ]),
            Effort {
                steps_factor: 2,
                peak_rate: 3e-3,
            },
        ),
        _ => (
            "Residual network of three stages, with an exit after each",
            Architecture::ResNet1d(ResNet1dSpec {
                samples: SAMPLES,
                classes: CLASSES,
                stem: conv(32, 9, 1),
                stages: vec![stage(32, 2), stage(48, 2), stage(64, 2)],
            }),
            Effort {
                steps_factor: 1,
                peak_rate: 2e-3,
            },
        ),
    }
}

/// A stage at full length: what the exits share is time resolution, what they lack is context.
fn stage(channels: usize, blocks: usize) -> StageSpec {
    StageSpec {
        channels,
        blocks,
        kernel: 9,
        stride: 1,
    }
}

fn exit_cards(after: &[usize], confusions: &[Confusion]) -> Vec<ExitCard> {
    let last = after.len() - 1;
    after
        .iter()
        .zip(confusions)
        .enumerate()
        .map(|(i, (&after_stage, confusion))| ExitCard {
            name: if i == last {
                "final".to_owned()
            } else {
                format!("exit{after_stage}")
            },
            after_stage,
            accuracy: rounded(confusion.accuracy()),
            recall: confusion.recall().into_iter().map(rounded).collect(),
            confusion: confusion.rows().to_vec(),
        })
        .collect()
}

fn write_evidence(file: &Path, projection: &Tensor, beats: &[Beat]) -> Result<(), ModelError> {
    let embed = || -> candle_core::Result<BTreeMap<String, Tensor>> {
        let (inputs, labels) = tensors(beats)?;
        Ok(BTreeMap::from([
            (PROJECTION.to_owned(), projection.detach()),
            (POINTS.to_owned(), inputs.matmul(&projection.detach())?),
            (LABELS.to_owned(), labels.to_dtype(candle_core::DType::F32)?),
        ]))
    };
    write_tensors(file, &embed().map_err(ModelError::compute("embedding"))?)
}

fn write_card<T: serde::Serialize>(file: &Path, card: &T) -> Result<(), ModelError> {
    let text = toml::to_string(card)
        .map_err(|error| ModelError::Training(format!("writing {}: {error}", file.display())))?;
    std::fs::write(file, text).map_err(|source| ModelError::io(file, source))
}

fn make_dir(dir: &Path) -> Result<(), ModelError> {
    std::fs::create_dir_all(dir).map_err(|source| ModelError::io(dir, source))
}

/// Four decimals: what a card shows and what its check tolerates.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

/// A seed per stream; streams of one run and of neighbouring seeds do not meet.
fn stream_seed(seed: u64, stream: Stream) -> u64 {
    // Fits i64, the only integer TOML has.
    (seed.wrapping_mul(8) ^ stream as u64) & (i64::MAX as u64)
}
