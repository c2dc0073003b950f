//! Hyper-parameters of a text encoder.

use serde::{Deserialize, Serialize};

/// Hyper-parameters of [`Bert`](super::Bert) that `config.json` lacks or that the card repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BertSpec {
    /// Kind of head on the last layer.
    pub head: BertHead,
    /// Values per answer: classes, or the width of an embedding.
    pub outputs: usize,
    /// Encoder layers; as in `config.json`.
    pub layers: usize,
    /// Encoder layers per stage; the last stage may have fewer.
    #[serde(default = "default_layers_per_stage")]
    pub layers_per_stage: usize,
    /// Tokens that a text is cut to, special ones included.
    pub max_tokens: usize,
}

/// Kind of head on the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BertHead {
    /// The mean over a text's tokens, scaled to length 1, as sentence-transformers does.
    SentenceEmbedding,
    /// The family's classifier on the first token.
    SequenceClassification,
}

// === impl BertSpec ===

impl BertSpec {
    /// Stages of the encoder.
    pub(super) fn stages(&self) -> usize {
        self.layers.div_ceil(self.layers_per_stage)
    }
}

fn default_layers_per_stage() -> usize {
    2
}
