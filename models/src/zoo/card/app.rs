//! The card of an application.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::check::{StatedProfile, check_distribution, check_file_name, check_profile, read_toml};
use super::tensor::TensorCard;
use crate::error::ModelError;
use crate::features::Features;
use crate::networks::task::Task;
use crate::regular_file;

/// File name of an application card.
pub const APP_CARD: &str = "app.toml";

/// The one class of an application that embeds.
pub const EMBEDDING: &str = "embedding";

/// The one class of an application whose answers are other tensors.
pub const ANSWER: &str = "answer";

/// `models/zoo/APP/app.toml`: one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppCard {
    /// Name, equal to the folder's.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Kind of answer.
    #[serde(default, skip_serializing_if = "Task::is_classify")]
    pub task: Task,
    /// Class names; a label is an index into this list. An application without classes gets the
    /// single one [`EMBEDDING`] or [`ANSWER`] when its card is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// File next to the card with a class name per line, instead of `classes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes_file: Option<String>,
    /// Default time from arrival to deadline, in milliseconds.
    pub slo_ms: f64,
    /// Shape of the penalty for a late answer.
    pub penalty: Penalty,
    /// Share of each class in the expected workload; sums to 1. Uniform by default.
    #[serde(default)]
    pub workload_mix: Vec<f64>,
    /// Whether requests may hold NaN and infinite numbers, which some models read as missing values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_finite: bool,
    /// Input tensors of one request.
    pub inputs: Vec<TensorCard>,
    /// Output tensors of one answer.
    pub outputs: Vec<TensorCard>,
    /// The set on which accuracies and recalls were measured. By default of unknown size, with all
    /// classes equally frequent.
    #[serde(default)]
    pub validation: ValidationCard,
    /// Nearest-neighbour evidence, if the application has it.
    pub sneakpeek: Option<SneakPeekCard>,
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
    /// Embedding and training points, next to the card.
    pub file: String,
    /// The features of a request that are embedded.
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
    /// Profile of the embedding's own classifier as evidence; absent in cards of former versions.
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

// === impl AppCard ===

impl AppCard {
    /// Reads and checks a card.
    ///
    /// # Errors
    /// The file cannot be read or is not TOML, or a field is unknown, missing or out of range.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let mut card: Self = read_toml(file)?;
        card.complete(file)?;
        card.check(file)?;
        Ok(card)
    }

    /// Fills in fields that a card may leave out.
    fn complete(&mut self, file: &Path) -> Result<(), ModelError> {
        match (&self.classes_file, self.task) {
            (_, task) if !task.is_classify() => {
                if !self.classes.is_empty() || self.classes_file.is_some() {
                    let reason = format!("not allowed with task \"{}\"", task.name());
                    return Err(ModelError::field(file, "classes", reason));
                }
                let only = match task {
                    Task::Embed => EMBEDDING,
                    _ => ANSWER,
                };
                self.classes = vec![only.to_owned()];
            }
            (Some(_), _) if !self.classes.is_empty() => {
                let reason = "is set together with `classes`: use one of the two";
                return Err(ModelError::field(file, "classes_file", reason));
            }
            (Some(labels), _) => {
                check_file_name(file, "classes_file", labels)?;
                self.classes = read_classes(&file.with_file_name(labels))?;
            }
            (None, _) => {}
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

    /// Values in one request, over all inputs. Saturates.
    pub fn samples(&self) -> usize {
        let widths = self.inputs.iter().map(TensorCard::width);
        widths.fold(0, usize::saturating_add)
    }

    /// Ranges of the inputs `names` in the values of a request, in the application's order; all
    /// inputs for `None`. Neighbouring inputs are joined. `None` if a name is unknown or out of
    /// order.
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
            let reason = format!("{}, must be above 0", self.slo_ms);
            return Err(ModelError::field(file, "slo_ms", reason));
        }
        check_distribution(file, "workload_mix", &self.workload_mix, classes)?;
        let frequencies = &self.validation.frequencies;
        check_distribution(file, "validation.frequencies", frequencies, classes)?;
        for (field, tensors) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if tensors.is_empty() {
                return Err(ModelError::field(file, field, "is empty"));
            }
        }
        for (field, tensors) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            for (i, tensor) in tensors.iter().enumerate() {
                tensor.check(file, &format!("{field}[{i}]"))?;
                tensor.check_image(file, &format!("{field}[{i}].image"), field == "inputs")?;
            }
        }
        let probabilities = self
            .outputs
            .iter()
            .position(|it| it.name == "probabilities");
        if let (Some(at), true) = (probabilities, self.task.is_classify()) {
            let shape = &self.outputs[at].shape;
            if *shape != [classes as i64] {
                let field = format!("outputs[{at}].shape");
                let reason =
                    format!("{shape:?}, the application has {classes} classes: [{classes}]");
                return Err(ModelError::field(file, field, reason));
            }
        }
        if self.sneakpeek.is_some() && !self.task.is_classify() {
            let reason = format!(
                "evidence is about classes, and task \"{}\" has none: leave out [sneakpeek]",
                self.task.name()
            );
            return Err(ModelError::field(file, "sneakpeek", reason));
        }
        let open = |input: &&TensorCard| !input.is_flat();
        if let (Some(_), Some(input)) = (&self.sneakpeek, self.inputs.iter().find(open)) {
            let reason = format!(
                "neighbours need inputs of fixed dimensions, and those of `{}` are open, or its type \
                 is another than FP32: leave out [sneakpeek]",
                input.name
            );
            return Err(ModelError::field(file, "sneakpeek", reason));
        }
        if self.non_finite && self.sneakpeek.is_some() {
            let reason = "true, but numbers that are not finite have no neighbours: leave out \
                          [sneakpeek], or this field";
            return Err(ModelError::field(file, "non_finite", reason));
        }
        match &self.sneakpeek {
            Some(sneakpeek) => sneakpeek.check(file, classes),
            None => Ok(()),
        }
    }
}

// === impl SneakPeekCard ===

impl SneakPeekCard {
    fn check(&self, file: &Path, classes: usize) -> Result<(), ModelError> {
        check_file_name(file, "sneakpeek.file", &self.file)?;
        if self.k == 0 {
            return Err(ModelError::field(
                file,
                "sneakpeek.k",
                "0, must be at least 1",
            ));
        }
        let alpha_ok = |alpha: &f64| alpha.is_finite() && *alpha > 0.0;
        if self.prior.len() != classes || !self.prior.iter().all(alpha_ok) {
            let reason = format!("needs {classes} values above 0");
            return Err(ModelError::field(file, "sneakpeek.prior", reason));
        }
        let neighbours = StatedProfile {
            accuracy: self.accuracy,
            recall: &self.recall,
            confusion: &self.confusion,
        };
        check_profile(file, "sneakpeek", &neighbours, classes)?;
        let Some(vote) = &self.vote else {
            return Ok(());
        };
        let vote = StatedProfile {
            accuracy: vote.accuracy,
            recall: &vote.recall,
            confusion: &vote.confusion,
        };
        check_profile(file, "sneakpeek.vote", &vote, classes)
    }
}

/// The lines of a file of class names.
fn read_classes(file: &Path) -> Result<Vec<String>, ModelError> {
    let text = regular_file::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
    let names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    match names.iter().position(String::is_empty) {
        Some(at) => {
            let line = format!("line {}", at + 1);
            Err(ModelError::field(file, line, "has no class name"))
        }
        None => Ok(names),
    }
}
