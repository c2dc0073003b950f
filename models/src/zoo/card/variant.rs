//! The card of a variant.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::check::{StatedProfile, check_file_name, check_profile, read_toml};
use super::quality::QualityCard;
use super::tensor::TensorCard;
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::onnx;

/// File name of a variant card.
pub const VARIANT_CARD: &str = "model.toml";

/// Most classes for which a recall is filled in; cards with more are refused.
const CLASSES_MAX: usize = 1 << 16;

/// `models/zoo/APP/VARIANT/model.toml`: one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantCard {
    /// Name, equal to the folder's.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Weights file, next to the card.
    pub weights: String,
    /// Trained values in the weights file; may be left out for an ONNX graph, whose file is
    /// counted.
    #[serde(default)]
    pub parameters: u64,
    /// Largest batch it may be given.
    pub max_batch: usize,
    /// Stages in the chain.
    pub stages: usize,
    /// Names of the application's inputs that it reads, in the application's order; all of them by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<String>>,
    /// Architecture and hyper-parameters.
    pub architecture: Architecture,
    /// Exits, shallowest first; the last one is after all stages.
    pub exits: Vec<ExitCard>,
    /// Whether the accuracies of the exits stand for a quality that is unknown: clients cannot ask for
    /// an accuracy then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quality_unknown: bool,
    /// Memory that an ONNX graph takes, as `switchyard add` measured it; by default that of its weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MeasuredMemory>,
    /// The measurement of the exits' accuracies on a labelled file, if `switchyard` made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<QualityCard>,
    /// Origin of the weights.
    pub provenance: Provenance,
}

/// Memory that an engine takes for a graph: an engine may keep weights twice, or spread them out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredMemory {
    /// Name of the engine. With another one the memory of the weights counts.
    pub engine: String,
    /// Bytes after the load and one request.
    pub bytes: u64,
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
    /// Recall per class. A card without it, as for public weights, is read as if every class had
    /// the accuracy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recall: Vec<f64>,
    /// Confusion matrix, rows by true class; empty if only accuracy and recall are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
}

/// How to make the same weights again. Carries no date, so that a repeated run writes the same
/// bytes. Public weights have no seed, steps and batch.
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
    /// Origin of the data.
    pub data: String,
}

/// The refusal of a kind of network that is unknown, or that was meant to be another, with the way
/// out.
fn with_way_out(file: &Path, error: ModelError) -> ModelError {
    let ModelError::CardSyntax { source, .. } = &error else {
        return error;
    };
    let message = source.message();
    let unknown = message
        .strip_prefix("unknown variant `")
        .filter(|rest| rest.contains("`onnx`"));
    let of_images = ["size", "layout", "scale"].map(|field| format!("unknown field `{field}`"));
    let reason = match unknown {
        Some(rest) if rest.starts_with("mobilenet") => format!(
            "{message}; \"mobilenet\" is a network over audio, MobileNetV3 over images is \
             \"mobilenet-v3\""
        ),
        Some(_) => format!(
            "{message}; any other network is served as an ONNX graph: `switchyard add model.onnx`"
        ),
        // Of all kinds, only the one over audio has an expansion.
        None if message.contains("`expansion`")
            && of_images.iter().any(|field| message.starts_with(field)) =>
        {
            "\"mobilenet\" is a network over audio; MobileNetV3 over images is \"mobilenet-v3\", and \
             other networks are ONNX graphs: `switchyard add model.onnx`"
                .to_owned()
        }
        None => return error,
    };
    ModelError::field(file, "architecture.kind", reason)
}

// === impl VariantCard ===

impl VariantCard {
    /// Reads and checks a card.
    ///
    /// # Errors
    /// The file cannot be read or is not TOML, a field is unknown, missing or out of range, or the
    /// card and the file of its ONNX graph do not fit each other.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let mut card: Self = read_toml(file).map_err(|error| with_way_out(file, error))?;
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

    /// Whether it reads this input of its application.
    pub fn reads(&self, input: &TensorCard) -> bool {
        let names = self.inputs.as_ref();
        names.is_none_or(|names| names.contains(&input.name))
    }

    /// Bytes of its weights, as they were trained.
    pub fn weight_bytes(&self) -> u64 {
        match &self.architecture {
            Architecture::Onnx(spec) => spec.bytes,
            // All other weights are f32.
            _ => self.parameters.saturating_mul(size_of::<f32>() as u64),
        }
    }

    /// Fills in fields from the file of an ONNX graph.
    fn complete(&mut self, file: &Path) -> Result<(), ModelError> {
        check_file_name(file, "weights", &self.weights)?;
        if let Architecture::Bert(spec) = &mut self.architecture {
            spec.complete(file)?;
        }
        let Architecture::Onnx(spec) = &mut self.architecture else {
            if self.memory.is_some() {
                let reason = "only of an ONNX graph: leave it out";
                return Err(ModelError::field(file, "memory", reason));
            }
            return match self.parameters {
                0 => Err(ModelError::field(file, "parameters", "missing")),
                _ => Ok(()),
            };
        };
        let header = onnx::read_header(file, &self.weights)?;
        spec.complete(file, &header)?;
        if let Some(memory) = &self.memory
            && memory.engine == onnx::engine_of(spec)
        {
            spec.bytes = spec.bytes.max(memory.bytes);
        }
        spec.check_batch(file, self.max_batch)?;
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
            return Err(ModelError::field(
                file,
                "max_batch",
                "0, must be at least 1",
            ));
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
        if let Some(quality) = &self.quality {
            quality.check(file, self.architecture.task(), self.quality_unknown)?;
        }
        let classes = self.architecture.classes();
        for (i, exit) in self.exits.iter().enumerate() {
            let profile = StatedProfile {
                accuracy: exit.accuracy,
                recall: &exit.recall,
                confusion: &exit.confusion,
            };
            check_profile(file, &format!("exits[{i}]"), &profile, classes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn refused(architecture: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(VARIANT_CARD);
        let card = format!(
            "name = \"x\"\nsummary = \"x\"\nweights = \"x\"\nparameters = 1\nmax_batch = 1\n\
             stages = 1\nexits = []\n[architecture]\n{architecture}\n[provenance]\n\
             command = \"x\"\ndata = \"x\"\n"
        );
        std::fs::write(&file, card).unwrap();
        VariantCard::read(&file).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_kind_of_network_names_the_way_out() {
        let swin = refused("kind = \"swin\"");
        assert!(
            swin.contains("`architecture.kind`: unknown variant `swin`"),
            "{swin}"
        );
        assert!(swin.contains("switchyard add model.onnx"), "{swin}");
        let other = refused("kind = \"mobilenet-v2\"");
        assert!(other.contains("is \"mobilenet-v3\""), "{other}");
        let audio = refused("kind = \"mobilenet\"\nsize = 224\nclasses = 3");
        assert!(
            audio.contains("\"mobilenet-v3\"") && audio.contains("audio"),
            "{audio}"
        );
        let field = refused("kind = \"mlp\"\nsize = 224");
        assert!(!field.contains("mobilenet"), "{field}");
    }
}
