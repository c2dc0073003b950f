//! `config.json`: the sizes of an encoder, as Hugging Face writes them.

use std::path::Path;

use serde::Deserialize;

use super::score::{ScoreActivation, StatedOutputs};
use super::spec::{BertHead, BertSpec};
use crate::error::ModelError;
use crate::networks::spec::{DEPTH_MAX, HYPER_PARAMETER_MAX};
use crate::regular_file;

/// Most entries of a vocabulary; the largest public ones have a quarter of it.
const VOCABULARY_MAX: usize = 1 << 20;

/// The fields of `config.json` that are used; the others concern training or other heads.
///
/// The second name of a field is DistilBERT's.
#[derive(Debug, Deserialize)]
pub(super) struct BertConfig {
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
    pub(super) hidden_act: HiddenActivation,
    pub(super) max_position_embeddings: usize,
    #[serde(default)]
    pub(super) type_vocab_size: usize,
    /// DistilBERT's files leave it out; the whole family uses this value.
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

/// A naming of tensors, and the details of the network that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BertFamily {
    Bert,
    Roberta,
    DistilBert,
}

/// The function between the two halves of a feed-forward layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HiddenActivation {
    /// With the error function.
    Gelu,
    /// Approximated with a hyperbolic tangent.
    #[serde(alias = "gelu_fast", alias = "gelu_pytorch_tanh")]
    GeluNew,
    Relu,
    #[serde(alias = "swish")]
    Silu,
}

/// Whether a `config.json` of this `model_type` is read.
pub(crate) fn knows(model_type: &str) -> bool {
    let name = serde_json::Value::from(model_type);
    ModelType::deserialize(name).is_ok()
}

fn default_eps() -> f64 {
    1e-12
}

// === impl BertConfig ===

impl BertConfig {
    /// Reads and checks a file; afterwards every shape fits into memory and agrees with the card.
    pub(super) fn read(file: &Path, spec: &BertSpec) -> Result<Self, ModelError> {
        let text =
            regular_file::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
        let mut json = serde_json::Deserializer::from_str(&text);
        let config: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let (field, mut reason) = (error.path().to_string(), error.inner().to_string());
            if matches!(field.as_str(), "model_type" | "hidden_act" | "activation") {
                reason.push_str(
                    "; export the model to ONNX: `optimum-cli export onnx --model NAME DIR`, then \
                     `switchyard add DIR/model.onnx`",
                );
            }
            ModelError::field(file, field, reason)
        })?;
        config.check(file, spec)?;
        config.check_outputs(file, spec)?;
        Ok(config)
    }

    pub(super) fn family(&self) -> BertFamily {
        match self.model_type {
            ModelType::Bert => BertFamily::Bert,
            ModelType::Roberta | ModelType::XlmRoberta | ModelType::Camembert => {
                BertFamily::Roberta
            }
            ModelType::Distilbert => BertFamily::DistilBert,
        }
    }

    /// Position of a text's first token. RoBERTa's positions start after its padding token's id.
    pub(super) fn first_position(&self) -> usize {
        match self.family() {
            BertFamily::Roberta => self.pad_token_id.unwrap_or(1).saturating_add(1),
            BertFamily::Bert | BertFamily::DistilBert => 0,
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
        let typed = self.family() != BertFamily::DistilBert;
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
        if spec.head == BertHead::SentenceEmbedding && hidden != spec.outputs {
            let reason = format!(
                "{hidden}, the card's architecture.outputs is {}",
                spec.outputs
            );
            return refuse("hidden_size", reason);
        }
        if self.family() == BertFamily::Bert && self.type_vocab_size < spec.texts {
            let reason = format!("{}, a pair of texts has 2", self.type_vocab_size);
            return refuse("type_vocab_size", reason);
        }
        Ok(())
    }

    /// Refuses classes whose probabilities are not those of a softmax.
    fn check_outputs(&self, file: &Path, spec: &BertSpec) -> Result<(), ModelError> {
        if spec.head != BertHead::SequenceClassification || spec.is_score() {
            return Ok(());
        }
        let stated = StatedOutputs::read(file)?;
        let apart = stated.activation == Some(ScoreActivation::Sigmoid);
        if !(stated.is_multi_label || apart) {
            return Ok(());
        }
        let field = match stated.is_multi_label {
            true => "problem_type",
            false => "sentence_transformers.activation_fn",
        };
        let reason = "each class has a probability of its own, and task \"classify\" answers with \
                      probabilities that sum to 1: export the model to ONNX and add it with --task \
                      tensors";
        Err(ModelError::field(file, field, reason))
    }
}
