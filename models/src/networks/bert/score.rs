//! The function from a classifier's single output to a score.
//!
//! The same weights rank alike with any of them and give other numbers, so the function is read
//! from `config.json` or stated, and never guessed.

use std::path::Path;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::stated::{agree, json};
use crate::error::ModelError;

/// The function of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreActivation {
    /// The output as it is.
    Identity,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
}

/// The fields of `config.json` that say how outputs are read.
#[derive(Deserialize)]
struct Config {
    problem_type: Option<String>,
    sentence_transformers: Option<CrossEncoder>,
    /// As sentence-transformers wrote it before version 4.
    sbert_ce_default_activation_function: Option<String>,
}

/// Written by the `CrossEncoder` of sentence-transformers: from version 4 on as a field of
/// `config.json`, from version 6 on as [`CROSS_ENCODER`].
#[derive(Deserialize)]
struct CrossEncoder {
    model_type: Option<String>,
    activation_fn: Option<String>,
}

/// File next to `config.json`.
pub(crate) const CROSS_ENCODER: &str = "config_sentence_transformers.json";

/// Statements of a `config.json` about outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatedOutputs {
    /// Whether `CrossEncoder` of sentence-transformers wrote the file: it reads pairs of texts.
    pub(crate) is_cross_encoder: bool,
    pub(crate) activation: Option<ScoreActivation>,
    /// Whether each class has a probability of its own, so that they do not sum to 1.
    pub(crate) is_multi_label: bool,
}

// === impl ScoreActivation ===

impl ScoreActivation {
    /// The function that the card or the `config.json` next to it states.
    pub(super) fn read(card: &Path, stated: Option<Self>) -> std::result::Result<Self, ModelError> {
        let found = StatedOutputs::read(&card.with_file_name("config.json"))?.activation;
        let missing = "missing: config.json says neither sentence_transformers.activation_fn nor \
                       problem_type \"regression\"; set it to \"identity\" or \"sigmoid\"";
        agree(card, "activation", stated, found, missing)
    }

    pub(super) fn apply(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Identity => Ok(x.clone()),
            Self::Sigmoid => candle_nn::ops::sigmoid(x),
        }
    }
}

// === impl StatedOutputs ===

impl StatedOutputs {
    /// Reads a `config.json`; a missing file states nothing.
    ///
    /// # Errors
    /// The file cannot be read, or names a function that is not known.
    pub(crate) fn read(file: &Path) -> std::result::Result<Self, ModelError> {
        let Some(config) = json::<Config>(file)? else {
            return Ok(Self::default());
        };
        let newest: Option<CrossEncoder> = json(&file.with_file_name(CROSS_ENCODER))?;
        let is_own = |encoder: &CrossEncoder| {
            let model_type = encoder.model_type.as_deref();
            encoder.activation_fn.is_some() || model_type == Some("CrossEncoder")
        };
        let by_encoder = newest.filter(is_own).or(config.sentence_transformers);
        let old = &config.sbert_ce_default_activation_function;
        let name = by_encoder
            .as_ref()
            .and_then(|encoder| encoder.activation_fn.as_ref())
            .or(old.as_ref());
        let problem = config.problem_type.as_deref();
        let activation = match name.map(|name| (name, name.rsplit('.').next())) {
            Some((_, Some("Identity"))) => Some(ScoreActivation::Identity),
            Some((_, Some("Sigmoid"))) => Some(ScoreActivation::Sigmoid),
            Some((name, _)) => {
                let reason = format!(
                    "`{name}`: known are torch's Identity and Sigmoid; export the model to ONNX"
                );
                let field = "sentence_transformers.activation_fn";
                return Err(ModelError::field(file, field, reason));
            }
            None if problem == Some("regression") => Some(ScoreActivation::Identity),
            None => None,
        };
        Ok(Self {
            is_cross_encoder: name.is_some() || by_encoder.is_some(),
            activation,
            is_multi_label: problem == Some("multi_label_classification"),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn stated(config: &str) -> std::result::Result<StatedOutputs, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.json");
        std::fs::write(&file, config).unwrap();
        StatedOutputs::read(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn the_function_is_read_from_either_form_of_config() {
        let new = r#"{"sentence_transformers": {"version": "5.1",
            "activation_fn": "torch.nn.modules.linear.Identity"}}"#;
        let new = stated(new).unwrap();
        assert!(new.is_cross_encoder);
        assert_eq!(new.activation, Some(ScoreActivation::Identity));
        let field = "sbert_ce_default_activation_function";
        let old = format!(r#"{{"{field}": "torch.nn.modules.activation.Sigmoid"}}"#);
        let old = stated(&old).unwrap();
        assert!(old.is_cross_encoder);
        assert_eq!(old.activation, Some(ScoreActivation::Sigmoid));
        let regression = stated(r#"{"problem_type": "regression"}"#).unwrap();
        assert!(!regression.is_cross_encoder);
        assert_eq!(regression.activation, Some(ScoreActivation::Identity));
        let many = stated(r#"{"problem_type": "multi_label_classification"}"#).unwrap();
        assert!(many.is_multi_label && many.activation.is_none());
        let unknown = stated(r#"{"sentence_transformers": {"activation_fn": "my.Tanh"}}"#);
        let unknown = unknown.unwrap_err();
        assert!(
            unknown.contains("activation_fn") && unknown.contains("`my.Tanh`"),
            "{unknown}"
        );
    }

    #[test]
    fn a_function_that_no_file_states_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let card = dir.path().join("model.toml");
        let unsaid = ScoreActivation::read(&card, None).unwrap_err().to_string();
        assert!(unsaid.contains("architecture.activation"), "{unsaid}");
        let said = ScoreActivation::read(&card, Some(ScoreActivation::Sigmoid));
        assert_eq!(said.unwrap(), ScoreActivation::Sigmoid);
        let config = r#"{"problem_type": "regression"}"#;
        std::fs::write(dir.path().join("config.json"), config).unwrap();
        let other = ScoreActivation::read(&card, Some(ScoreActivation::Sigmoid)).unwrap_err();
        let other = other.to_string();
        assert!(other.contains("the model's own files say"), "{other}");
    }
}
