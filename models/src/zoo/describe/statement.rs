//! The facts that a model's files do not have, and the cards made with them.

use std::path::{Path, PathBuf};

use super::super::card::{
    AppCard, Datatype, ExitCard, Penalty, Provenance, Task, TensorCard, ValidationCard, VariantCard,
};
use super::image::Preprocessing;
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::bert::{Pooling, ScoreActivation};
use crate::networks::inverted::ImagePadding;
use crate::networks::onnx::OnnxScores;

/// The accuracy on a card whose quality is unknown: the same for all, so that policies compare such
/// variants by latency.
const UNKNOWN_QUALITY: f64 = 0.5;

/// The facts that a model's files do not have.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Name of the application.
    pub app: String,
    /// Name of the variant.
    pub variant: String,
    /// Kind of its answers; otherwise derived.
    pub task: Option<Task>,
    /// Names of its classes, by position.
    pub classes: Vec<String>,
    /// Meaning of a graph's scores of classes.
    pub scores: Option<OnnxScores>,
    /// A graph's output with the scores of classes.
    pub output: Option<String>,
    /// An encoder's way from tokens to an embedding, if its files do not say it.
    pub pooling: Option<Pooling>,
    /// Whether such an embedding is scaled to length 1.
    pub normalise: Option<bool>,
    /// Texts that an encoder reads together, if its files do not say it.
    pub texts: Option<usize>,
    /// The function of an encoder's score, if its files do not say it.
    pub activation: Option<ScoreActivation>,
    /// Zeros around the images of a network whose tensors do not say it.
    pub padding: Option<ImagePadding>,
    /// Common shapes of inputs with open dimensions, by name.
    pub typical: Vec<(String, Vec<usize>)>,
    /// The way from an encoded image to a graph's input.
    pub preprocessing: Preprocessing,
    /// Largest batch.
    pub max_batch: usize,
    /// Share of right answers, or another quality from 0 to 1.
    pub quality: Option<f64>,
    /// Time from arrival to deadline, in milliseconds.
    pub slo_ms: f64,
    /// The command line.
    pub command: String,
}

/// The cards of a model, and its files.
#[derive(Clone, Debug)]
pub struct Description {
    /// The application's card, if it is new.
    pub app: AppCard,
    /// The variant's card.
    pub variant: VariantCard,
    /// Files next to the variant's card: the present one, and its path there. A graph may have values
    /// in other files, see [`copy_graph`](crate::onnx::copy_graph).
    pub files: Vec<(PathBuf, PathBuf)>,
    /// Facts that stand for ones that the files do not have, one line each.
    pub notes: Vec<String>,
}

/// The shape of an application's outputs.
pub(super) fn classified(classes: usize) -> Vec<TensorCard> {
    vec![
        TensorCard::fixed("probabilities", Datatype::Fp32, &[classes]),
        TensorCard::fixed("label", Datatype::Int64, &[1]),
    ]
}

// === impl Statement ===

impl Statement {
    /// Whether the model's files say how images become tensors.
    pub(super) fn is_derived_image(&self) -> bool {
        self.preprocessing == Preprocessing::Derived
    }

    pub(super) fn app_card(
        &self,
        task: Task,
        inputs: Vec<TensorCard>,
        outputs: Vec<TensorCard>,
        classes: Vec<String>,
    ) -> AppCard {
        AppCard {
            name: self.app.clone(),
            summary: format!("Added as {}/{}", self.app, self.variant),
            task,
            classes,
            classes_file: None,
            slo_ms: self.slo_ms,
            penalty: Penalty::Linear,
            workload_mix: Vec::new(),
            non_finite: false,
            inputs,
            outputs,
            validation: ValidationCard::default(),
            sneakpeek: None,
        }
    }

    pub(super) fn variant_card(
        &self,
        source: &Path,
        weights: &str,
        parameters: u64,
        architecture: Architecture,
    ) -> VariantCard {
        let exits = architecture.exits();
        let stages = exits.last().copied().unwrap_or(1);
        VariantCard {
            name: self.variant.clone(),
            summary: format!("From {}", source.display()),
            weights: weights.to_owned(),
            parameters,
            max_batch: self.max_batch,
            stages,
            inputs: None,
            architecture,
            exits: vec![ExitCard {
                name: "final".to_owned(),
                after_stage: stages,
                accuracy: self.quality.unwrap_or(UNKNOWN_QUALITY),
                recall: Vec::new(),
                confusion: Vec::new(),
            }],
            quality_unknown: self.quality.is_none(),
            memory: None,
            quality: None,
            provenance: Provenance {
                command: self.command.clone(),
                seed: 0,
                steps: 0,
                batch: 0,
                data: "the quality is declared, not measured".to_owned(),
            },
        }
    }

    /// The names of the classes, which must be `classes`.
    pub(super) fn names(&self, source: &Path, classes: usize) -> Result<Vec<String>, ModelError> {
        if self.classes.len() == classes {
            return Ok(self.classes.clone());
        }
        let reason = format!(
            "answers with {classes} classes, --classes has {}",
            self.classes.len()
        );
        Err(ModelError::weights(source, reason))
    }
}
