//! The cards of the zoo: what an application is and what a variant of it can do.
//!
//! Cards are TOML. A field this version does not know is refused, so that a typing error never
//! silently means a default. Every number here was measured by the training run that wrote the
//! card, on the validation set it names; the cards of public weights are written by hand, and say
//! no more than is known.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;
use crate::error::ModelError;
use crate::features::Features;
use crate::onnx;

/// File name of an application card.
pub const APP_CARD: &str = "app.toml";

/// File name of a variant card.
pub const VARIANT_CARD: &str = "model.toml";

/// The one class of an application that embeds.
pub const EMBEDDING: &str = "embedding";

/// Most classes that a recall is filled in for; what has more is refused.
const CLASSES_MAX: usize = 1 << 16;

/// Largest distance of a distribution's sum from 1, and of a rounded figure from its recount.
const TOLERANCE: f64 = 1e-3;

/// `models/zoo/APP/app.toml`: one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppCard {
    /// Name, equal to the folder's.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// What its answers are.
    #[serde(default, skip_serializing_if = "Task::is_classify")]
    pub task: Task,
    /// Class names; a label is an index into this list. Once read, an application that embeds
    /// has the one class [`EMBEDDING`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// File beside the card with a class name per line, in the place of `classes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes_file: Option<String>,
    /// Default time from arrival to deadline, in milliseconds.
    pub slo_ms: f64,
    /// Shape of the penalty for a late answer.
    pub penalty: Penalty,
    /// Share of each class in the workload the application expects; sums to 1. A card without it
    /// expects all alike.
    #[serde(default)]
    pub workload_mix: Vec<f64>,
    /// Input tensors of one request.
    pub inputs: Vec<TensorCard>,
    /// Output tensors of one answer.
    pub outputs: Vec<TensorCard>,
    /// The set on which accuracies and recalls were measured. A card without it says nothing of
    /// its size and takes all classes to be equally frequent.
    #[serde(default)]
    pub validation: ValidationCard,
    /// Nearest-neighbour evidence, where the application has it.
    pub sneakpeek: Option<SneakPeekCard>,
}

/// What an application's answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// One of its classes.
    #[default]
    Classify,
    /// A vector, to be compared with others. Whoever schedules sees one class, whose recall is
    /// the accuracy.
    Embed,
}

/// Penalty of an answer after its deadline (SneakPeek eq. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Penalty {
    /// A late answer is worth nothing.
    Step,
    /// Worth falls linearly with lateness relative to the deadline.
    Linear,
    /// Worth falls along a sigmoid of that ratio.
    Sigmoid,
}

/// One tensor of a request or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorCard {
    /// Name on the wire.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Shape without the batch dimension.
    pub shape: Vec<usize>,
}

/// Element type, in the words of the Open Inference Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Datatype {
    /// 32-bit IEEE float.
    #[serde(rename = "FP32")]
    Fp32,
    /// 64-bit signed integer.
    #[serde(rename = "INT64")]
    Int64,
    /// A string; as an input, UTF-8 text.
    #[serde(rename = "BYTES")]
    Bytes,
}

/// The validation set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationCard {
    /// Inputs in the set.
    pub samples: u64,
    /// Share of each class in the set; sums to 1.
    pub frequencies: Vec<f64>,
    /// Seed of the generator that made the set.
    pub seed: u64,
}

/// Nearest-neighbour evidence of an application (SneakPeek section 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SneakPeekCard {
    /// Embedding and training points, beside the card.
    pub file: String,
    /// What of a request is embedded.
    #[serde(default)]
    pub features: Features,
    /// Neighbours asked for.
    pub k: usize,
    /// Dirichlet alpha per class; 0.5 each is Jeffreys' prior.
    pub prior: Vec<f64>,
    /// Profiled accuracy of the posterior's most likely class on the validation set.
    pub accuracy: f64,
    /// Its recall per class.
    pub recall: Vec<f64>,
    /// Its confusion matrix, rows by true class.
    pub confusion: Vec<Vec<u64>>,
    /// What the embedding's own classifier does in the neighbours' place; absent in cards of
    /// former versions.
    pub vote: Option<VoteCard>,
}

/// A small classifier as evidence (SneakPeek section 4): a single vote per request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoteCard {
    /// Profiled accuracy on the validation set.
    pub accuracy: f64,
    /// Its recall per class.
    pub recall: Vec<f64>,
    /// Its confusion matrix, rows by true class.
    pub confusion: Vec<Vec<u64>>,
}

/// `models/zoo/APP/VARIANT/model.toml`: one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantCard {
    /// Name, equal to the folder's.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// Weights file, beside the card.
    pub weights: String,
    /// Trained numbers in the weights file; an ONNX graph's may be left out and are counted.
    #[serde(default)]
    pub parameters: u64,
    /// Largest batch it may be given.
    pub max_batch: usize,
    /// Stages in the chain.
    pub stages: usize,
    /// Names of the application's inputs that it reads, in the application's order; all of them
    /// when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<String>>,
    /// Architecture and hyper-parameters.
    pub architecture: Architecture,
    /// Where it can answer, shallowest first; the last one is after all stages.
    pub exits: Vec<ExitCard>,
    /// How it came to be.
    pub provenance: Provenance,
}

/// One exit of a variant, with its profile on the validation set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitCard {
    /// Name, unique within the variant.
    pub name: String,
    /// Stages that run before its head.
    pub after_stage: usize,
    /// Share of right answers.
    pub accuracy: f64,
    /// Recall per class. Where a card has none, as for public weights, it is read as the accuracy
    /// for every class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recall: Vec<f64>,
    /// Confusion matrix, rows by true class; empty where nothing is known but accuracy and
    /// recall.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
}

/// What to run to get the same weights again. Carries no date, so that a repeated run writes the
/// same bytes. Public weights have no seed, steps and batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Command line.
    pub command: String,
    /// Seed of the run.
    #[serde(default)]
    pub seed: u64,
    /// Optimiser steps taken.
    #[serde(default)]
    pub steps: u64,
    /// Inputs per step, each drawn afresh.
    #[serde(default)]
    pub batch: usize,
    /// Where the data came from.
    pub data: String,
}

// === impl AppCard ===

impl AppCard {
    /// Reads and checks a card.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, has a field unknown, missing or of an impossible
    /// value.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let mut card: Self = read_toml(file)?;
        card.complete(file)?;
        card.check(file)?;
        Ok(card)
    }

    /// Fills in what a card may leave out.
    fn complete(&mut self, file: &Path) -> Result<(), ModelError> {
        match (&self.classes_file, self.task) {
            (_, Task::Embed) if !self.classes.is_empty() || self.classes_file.is_some() => {
                let reason = "an application that embeds has none";
                return Err(ModelError::field(file, "classes", reason));
            }
            (_, Task::Embed) => self.classes = vec![EMBEDDING.to_owned()],
            (Some(_), Task::Classify) if !self.classes.is_empty() => {
                let reason = "is set beside classes";
                return Err(ModelError::field(file, "classes_file", reason));
            }
            (Some(labels), Task::Classify) => {
                check_file_name(file, "classes_file", labels)?;
                self.classes = read_classes(&file.with_file_name(labels))?;
            }
            (None, Task::Classify) => {}
        }
        let classes = self.classes.len();
        let even = vec![1.0 / classes.max(1) as f64; classes];
        if self.workload_mix.is_empty() {
            self.workload_mix.clone_from(&even);
        }
        if self.validation == ValidationCard::default() {
            self.validation.frequencies = even;
        }
        Ok(())
    }

    /// Numbers in one request, over all inputs. Saturates.
    pub fn samples(&self) -> usize {
        let widths = self.inputs.iter().map(TensorCard::width);
        widths.fold(0, usize::saturating_add)
    }

    /// Where the inputs `names` lie among the numbers of a request, in the application's order;
    /// all inputs for `None`. Neighbouring inputs are joined. `None` when a name is no input or
    /// comes out of order.
    pub fn input_ranges<S: AsRef<str>>(&self, names: Option<&[S]>) -> Option<Vec<Range<usize>>> {
        let Some(names) = names else {
            return Some(std::iter::once(0..self.samples()).collect());
        };
        let mut wanted = names.iter().map(AsRef::as_ref).peekable();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut from = 0usize;
        for input in &self.inputs {
            let to = from.saturating_add(input.width());
            if wanted.next_if(|name| *name == input.name).is_some() {
                match ranges.last_mut() {
                    Some(last) if last.end == from => last.end = to,
                    _ => ranges.push(from..to),
                }
            }
            from = to;
        }
        (wanted.peek().is_none() && !ranges.is_empty()).then_some(ranges)
    }

    fn check(&self, file: &Path) -> Result<(), ModelError> {
        let classes = self.classes.len();
        if classes < 2 && self.task == Task::Classify {
            return Err(ModelError::field(file, "classes", "needs at least 2"));
        }
        if !(self.slo_ms.is_finite() && self.slo_ms > 0.0) {
            return Err(ModelError::field(file, "slo_ms", "must be above 0"));
        }
        check_distribution(file, "workload_mix", &self.workload_mix, classes)?;
        let frequencies = &self.validation.frequencies;
        check_distribution(file, "validation.frequencies", frequencies, classes)?;
        for (field, tensors) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if tensors.is_empty() {
                return Err(ModelError::field(file, field, "is empty"));
            }
        }
        for (i, input) in self.inputs.iter().enumerate() {
            if input.datatype == Datatype::Bytes && input.shape != [1] {
                let reason = format!("{:?}, must be [1]: one text per request", input.shape);
                return Err(ModelError::field(
                    file,
                    format!("inputs[{i}].shape"),
                    reason,
                ));
            }
        }
        match &self.sneakpeek {
            Some(sneakpeek) => sneakpeek.check(file, classes),
            None => Ok(()),
        }
    }
}

// === impl Task ===

impl Task {
    fn is_classify(&self) -> bool {
        *self == Self::Classify
    }
}

// === impl TensorCard ===

impl TensorCard {
    /// Numbers in one tensor. Saturates.
    pub fn width(&self) -> usize {
        let dimensions = self.shape.iter();
        dimensions.fold(1, |width: usize, &size| width.saturating_mul(size))
    }
}

// === impl SneakPeekCard ===

impl SneakPeekCard {
    fn check(&self, file: &Path, classes: usize) -> Result<(), ModelError> {
        check_file_name(file, "sneakpeek.file", &self.file)?;
        if self.k == 0 {
            return Err(ModelError::field(file, "sneakpeek.k", "must be at least 1"));
        }
        let alpha_ok = |alpha: &f64| alpha.is_finite() && *alpha > 0.0;
        if self.prior.len() != classes || !self.prior.iter().all(alpha_ok) {
            let reason = format!("needs {classes} numbers above 0");
            return Err(ModelError::field(file, "sneakpeek.prior", reason));
        }
        let neighbours = (
            self.accuracy,
            self.recall.as_slice(),
            self.confusion.as_slice(),
        );
        check_profile(file, "sneakpeek", neighbours, classes)?;
        let Some(vote) = &self.vote else {
            return Ok(());
        };
        let vote = (
            vote.accuracy,
            vote.recall.as_slice(),
            vote.confusion.as_slice(),
        );
        check_profile(file, "sneakpeek.vote", vote, classes)
    }
}

// === impl VariantCard ===

impl VariantCard {
    /// Reads and checks a card.
    ///
    /// # Errors
    /// As [`AppCard::read`].
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let mut card: Self = read_toml(file)?;
        card.complete(file)?;
        let classes = card.architecture.classes();
        for exit in &mut card.exits {
            if exit.recall.is_empty() && exit.confusion.is_empty() && classes <= CLASSES_MAX {
                exit.recall = vec![exit.accuracy; classes];
            }
        }
        card.check(file)?;
        Ok(card)
    }

    /// Bytes its weights take, as they were trained.
    pub fn weight_bytes(&self) -> u64 {
        match &self.architecture {
            Architecture::Onnx(spec) => spec.bytes,
            // All others are kept in f32.
            _ => self.parameters.saturating_mul(size_of::<f32>() as u64),
        }
    }

    /// Fills in what the file of an ONNX graph says.
    fn complete(&mut self, file: &Path) -> Result<(), ModelError> {
        check_file_name(file, "weights", &self.weights)?;
        let Architecture::Onnx(spec) = &mut self.architecture else {
            return match self.parameters {
                0 => Err(ModelError::field(file, "parameters", "missing")),
                _ => Ok(()),
            };
        };
        let header = onnx::read_header(file, &self.weights)?;
        spec.complete(file, &header)?;
        spec.check_batch(file, &header, self.max_batch)?;
        if (self.stages, self.exits.len()) != (1, 1) {
            let reason = "an ONNX graph is one stage with one exit";
            return Err(ModelError::field(file, "stages", reason));
        }
        if self.parameters == 0 {
            self.parameters = header.parameters;
        }
        if self.parameters != header.parameters {
            let reason = format!("{}, the graph has {}", self.parameters, header.parameters);
            return Err(ModelError::field(file, "parameters", reason));
        }
        Ok(())
    }

    fn check(&self, file: &Path) -> Result<(), ModelError> {
        if self.max_batch == 0 {
            return Err(ModelError::field(file, "max_batch", "must be at least 1"));
        }
        self.architecture.check().map_err(|bad| {
            ModelError::field(file, format!("architecture.{}", bad.field), bad.reason)
        })?;
        let needed = self.architecture.exits();
        let stages = needed.last().copied().unwrap_or_default();
        if self.stages != stages {
            let reason = format!("{}, the architecture has {stages}", self.stages);
            return Err(ModelError::field(file, "stages", reason));
        }
        let found: Vec<usize> = self.exits.iter().map(|exit| exit.after_stage).collect();
        if found != needed {
            let reason = format!("after stages {found:?}, the architecture has {needed:?}");
            return Err(ModelError::field(file, "exits", reason));
        }
        let classes = self.architecture.classes();
        for (i, exit) in self.exits.iter().enumerate() {
            let profile = (
                exit.accuracy,
                exit.recall.as_slice(),
                exit.confusion.as_slice(),
            );
            check_profile(file, &format!("exits[{i}]"), profile, classes)?;
        }
        Ok(())
    }
}

// === checks ===

fn read_toml<T: DeserializeOwned>(file: &Path) -> Result<T, ModelError> {
    let text = std::fs::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
    toml::from_str(&text).map_err(|source| ModelError::CardSyntax {
        file: file.to_path_buf(),
        source: Box::new(source),
    })
}

/// The lines of a file of class names.
fn read_classes(file: &Path) -> Result<Vec<String>, ModelError> {
    let text = std::fs::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
    let names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    match names.iter().position(String::is_empty) {
        Some(at) => {
            let line = format!("line {}", at + 1);
            Err(ModelError::field(file, line, "has no class name"))
        }
        None => Ok(names),
    }
}

/// Refuses anything but a plain file name, so that a card cannot reach outside its folder.
fn check_file_name(card: &Path, field: &str, name: &str) -> Result<(), ModelError> {
    if Path::new(name).file_name() == Some(name.as_ref()) {
        return Ok(());
    }
    let reason = format!("`{name}` is not a plain file name");
    Err(ModelError::field(card, field, reason))
}

fn check_distribution(
    file: &Path,
    field: &str,
    shares: &[f64],
    classes: usize,
) -> Result<(), ModelError> {
    if shares.len() != classes {
        let reason = format!("{} entries for {classes} classes", shares.len());
        return Err(ModelError::field(file, field, reason));
    }
    let sum: f64 = shares.iter().sum();
    let valid = |share: &f64| (0.0..=1.0).contains(share);
    if !shares.iter().all(valid) || (sum - 1.0).abs() > TOLERANCE {
        let reason = format!("must be shares that sum to 1, got {shares:?}");
        return Err(ModelError::field(file, field, reason));
    }
    Ok(())
}

/// Checks that a confusion matrix is square and that accuracy and recall follow from it. Without
/// a matrix, that both are shares.
fn check_profile(
    file: &Path,
    at: &str,
    (accuracy, recall, confusion): (f64, &[f64], &[Vec<u64>]),
    classes: usize,
) -> Result<(), ModelError> {
    if confusion.is_empty() {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        if !is_share(&accuracy) {
            let reason = format!("{accuracy} is not between 0 and 1");
            return Err(ModelError::field(file, format!("{at}.accuracy"), reason));
        }
        if recall.len() != classes || !recall.iter().all(is_share) {
            let reason = format!("needs {classes} numbers between 0 and 1");
            return Err(ModelError::field(file, format!("{at}.recall"), reason));
        }
        return Ok(());
    }
    if confusion.len() != classes || confusion.iter().any(|row| row.len() != classes) {
        let reason = format!("must be {classes} by {classes}");
        return Err(ModelError::field(file, format!("{at}.confusion"), reason));
    }
    // In f64: a hostile count must not overflow a sum.
    let row_sum = |row: &[u64]| row.iter().map(|&count| count as f64).sum::<f64>();
    let all: f64 = confusion.iter().map(|row| row_sum(row)).sum();
    let right: f64 = (0..classes).map(|i| confusion[i][i] as f64).sum();
    let close = |stated: f64, part: f64, whole: f64| {
        (stated - if whole > 0.0 { part / whole } else { 0.0 }).abs() <= TOLERANCE
    };
    if !close(accuracy, right, all) {
        let reason = format!("{accuracy} does not follow from the confusion matrix");
        return Err(ModelError::field(file, format!("{at}.accuracy"), reason));
    }
    let follows = |i: usize| close(recall[i], confusion[i][i] as f64, row_sum(&confusion[i]));
    if recall.len() != classes || !(0..classes).all(follows) {
        let reason = format!("{recall:?} does not follow from the confusion matrix");
        return Err(ModelError::field(file, format!("{at}.recall"), reason));
    }
    Ok(())
}
