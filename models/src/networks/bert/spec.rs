//! Hyper-parameters of a text encoder.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::pooling::{Pooling, SentencePooling};
use super::score::ScoreActivation;
use crate::error::ModelError;
use crate::networks::spec::{BadHyperParameter, check_depth, check_range};

/// Parts of a layer behind which a stage may end.
pub(super) const HALVES: usize = 2;

/// Hyper-parameters of [`Bert`](super::Bert) that `config.json` lacks or that the card repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BertSpec {
    /// Kind of head on the last layer.
    pub head: BertHead,
    /// Values per answer: classes, the width of an embedding, or 1 for a score.
    pub outputs: usize,
    /// Texts of one request: 2 for a pair, such as a query and a passage.
    #[serde(default = "default_texts", skip_serializing_if = "is_default_texts")]
    pub texts: usize,
    /// Encoder layers; as in `config.json`.
    pub layers: usize,
    /// Encoder layers per stage; the last stage may have fewer.
    #[serde(default = "default_layers_per_stage")]
    pub layers_per_stage: usize,
    /// 2: attention and feed-forward network of each layer are stages of their own, with 1 layer per stage.
    #[serde(
        default = "default_stages_per_layer",
        skip_serializing_if = "is_default_stages_per_layer"
    )]
    pub stages_per_layer: usize,
    /// Tokens that a text is cut to, special ones included.
    pub max_tokens: usize,
    /// Tokens of a common text, at which latencies are measured; at most `max_tokens`.
    #[serde(
        default = "default_typical_tokens",
        skip_serializing_if = "is_default_typical"
    )]
    pub typical_tokens: usize,
    /// From the tokens' vectors to an embedding; may be left out if the model's own
    /// `1_Pooling/config.json` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// Whether an embedding is scaled to length 1; may be left out if the model's own `modules.json`
    /// says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalise: Option<bool>,
    /// The function of a score; may be left out if the model's own `config.json` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<ScoreActivation>,
}

/// Kind of head on the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BertHead {
    /// One vector of the vectors of a text's tokens, as sentence-transformers does.
    SentenceEmbedding,
    /// The family's classifier on the first token: classes, or with a single output a score.
    SequenceClassification,
}

// === impl BertSpec ===

impl BertSpec {
    /// Fills in fields that the card leaves out from the model's own files, and compares the others.
    pub(crate) fn complete(&mut self, card: &Path) -> Result<(), ModelError> {
        if self.head == BertHead::SentenceEmbedding {
            let way = SentencePooling::read(card, self.pooling, self.normalise)?;
            (self.pooling, self.normalise) = (Some(way.pooling), Some(way.normalise));
        }
        if self.is_score() {
            self.activation = Some(ScoreActivation::read(card, self.activation)?);
        }
        Ok(())
    }

    /// Whether an answer is one number.
    pub(super) fn is_score(&self) -> bool {
        self.head == BertHead::SequenceClassification && self.outputs == 1
    }

    /// Stages of the encoder.
    pub(super) fn stages(&self) -> usize {
        self.layers.div_ceil(self.layers_per_stage) * self.stages_per_layer
    }

    /// Half layers of a stage: attention, feed-forward network, and so on.
    pub(super) fn halves_per_stage(&self) -> usize {
        HALVES * self.layers_per_stage / self.stages_per_layer
    }

    pub(super) fn check_stages(&self) -> Result<(), BadHyperParameter> {
        check_depth("layers_per_stage", self.layers_per_stage)?;
        check_range("stages_per_layer", self.stages_per_layer, HALVES)?;
        if self.stages_per_layer > 1 && self.layers_per_stage > 1 {
            return Err(BadHyperParameter {
                field: "stages_per_layer".to_owned(),
                reason: format!("{} needs layers_per_stage = 1", self.stages_per_layer),
            });
        }
        Ok(())
    }
}

fn default_texts() -> usize {
    1
}

fn is_default_texts(texts: &usize) -> bool {
    *texts == default_texts()
}

fn default_typical_tokens() -> usize {
    64
}

fn is_default_typical(tokens: &usize) -> bool {
    *tokens == default_typical_tokens()
}

fn default_layers_per_stage() -> usize {
    2
}

fn default_stages_per_layer() -> usize {
    1
}

fn is_default_stages_per_layer(stages: &usize) -> bool {
    *stages == default_stages_per_layer()
}
