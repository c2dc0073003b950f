//! `config.json`: the sizes of an encoder, as Hugging Face writes them.

use std::path::Path;

use serde::Deserialize;

use super::{BertSpec, HeadKind};
use crate::architecture::{DEPTH_MAX, HYPER_PARAMETER_MAX};
use crate::error::ModelError;

/// Most entries of a vocabulary; the largest public ones have a quarter of it.
const VOCABULARY_MAX: usize = 1 << 20;

/// What is read of `config.json`; the rest of it concerns training or other heads.
///
/// The second name of a field is DistilBERT's.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    model_type: ModelType,
    pub(super) vocab_size: usize,
    #[serde(alias = "dim")]
    pub(super) hidden_size: usize,
    #[serde(alias = "n_layers")]
    num_hidden_layers: usize,
    #[serde(alias = "n_heads")]
    pub(super) num_attention_heads: usize,
    #[serde(alias = "hidden_dim")]
    pub(super) intermediate_size: usize,
    #[serde(alias = "activation")]
    pub(super) hidden_act: Activation,
    pub(super) max_position_embeddings: usize,
    #[serde(default)]
    pub(super) type_vocab_size: usize,
    /// DistilBERT does not write it down; all of the family use this one.
    #[serde(default = "default_eps")]
    pub(super) layer_norm_eps: f64,
    #[serde(default)]
    pad_token_id: Option<usize>,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModelType {
    Bert,
    Roberta,
    XlmRoberta,
    Camembert,
    Distilbert,
}

/// A naming of tensors and what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Bert,
    Roberta,
    DistilBert,
}

/// The function between the two halves of a feed-forward layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Activation {
    /// With the error function.
    Gelu,
    /// Approximated with a hyperbolic tangent.
    #[serde(alias = "gelu_fast", alias = "gelu_pytorch_tanh")]
    GeluNew,
    Relu,
    #[serde(alias = "swish")]
    Silu,
}

fn default_eps() -> f64 {
    1e-12
}

// === impl Config ===

impl Config {
    /// Reads and checks a file; afterwards every shape fits into memory and the card.
    pub(super) fn read(file: &Path, spec: &BertSpec) -> Result<Self, ModelError> {
        let text = std::fs::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
        let mut json = serde_json::Deserializer::from_str(&text);
        let config: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            ModelError::field(file, error.path().to_string(), error.inner().to_string())
        })?;
        config.check(file, spec)?;
        Ok(config)
    }

    pub(super) fn family(&self) -> Family {
        match self.model_type {
            ModelType::Bert => Family::Bert,
            ModelType::Roberta | ModelType::XlmRoberta | ModelType::Camembert => Family::Roberta,
            ModelType::Distilbert => Family::DistilBert,
        }
    }

    /// Position of a text's first token. RoBERTa counts on from its padding token.
    pub(super) fn first_position(&self) -> usize {
        match self.family() {
            Family::Roberta => self.pad_token_id.unwrap_or(1).saturating_add(1),
            Family::Bert | Family::DistilBert => 0,
        }
    }

    fn check(&self, file: &Path, spec: &BertSpec) -> Result<(), ModelError> {
        let refuse =
            |field: &str, reason: String| Err(ModelError::field(file, field.to_owned(), reason));
        let sizes = [
            ("vocab_size", self.vocab_size, VOCABULARY_MAX),
            ("hidden_size", self.hidden_size, HYPER_PARAMETER_MAX),
            ("num_hidden_layers", self.num_hidden_layers, DEPTH_MAX),
            (
                "num_attention_heads",
                self.num_attention_heads,
                HYPER_PARAMETER_MAX,
            ),
            (
                "intermediate_size",
                self.intermediate_size,
                HYPER_PARAMETER_MAX,
            ),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                HYPER_PARAMETER_MAX,
            ),
        ];
        for (field, value, max) in sizes {
            if !(1..=max).contains(&value) {
                return refuse(field, format!("{value} is not in 1..={max}"));
            }
        }
        if let Some(kind) = &self.position_embedding_type
            && kind != "absolute"
        {
            return refuse(
                "position_embedding_type",
                format!("`{kind}`, only `absolute` is known"),
            );
        }
        let (hidden, heads) = (self.hidden_size, self.num_attention_heads);
        if !hidden.is_multiple_of(heads) {
            let reason = format!("{heads} do not divide hidden_size {hidden}");
            return refuse("num_attention_heads", reason);
        }
        if self.num_hidden_layers != spec.layers {
            let reason = format!(
                "{}, the card's architecture.layers is {}",
                self.num_hidden_layers, spec.layers
            );
            return refuse("num_hidden_layers", reason);
        }
        let typed = self.family() != Family::DistilBert;
        if typed && !(1..=HYPER_PARAMETER_MAX).contains(&self.type_vocab_size) {
            let reason = format!(
                "{} is not in 1..={HYPER_PARAMETER_MAX}",
                self.type_vocab_size
            );
            return refuse("type_vocab_size", reason);
        }
        if !(self.layer_norm_eps > 0.0 && self.layer_norm_eps < 1.0) {
            let reason = format!("{} is not between 0 and 1", self.layer_norm_eps);
            return refuse("layer_norm_eps", reason);
        }
        let positions = self.max_position_embeddings;
        let last = self.first_position().saturating_add(spec.max_tokens);
        if last > positions {
            let reason = format!(
                "{positions}, the card's architecture.max_tokens {} needs {last}",
                spec.max_tokens
            );
            return refuse("max_position_embeddings", reason);
        }
        if spec.head == HeadKind::SentenceEmbedding && hidden != spec.outputs {
            let reason = format!(
                "{hidden}, the card's architecture.outputs is {}",
                spec.outputs
            );
            return refuse("hidden_size", reason);
        }
        Ok(())
    }
}
