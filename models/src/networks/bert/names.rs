//! Tensor names of the families.

use super::config::BertFamily;
use crate::weights::params::Params;

/// Tensor names of one file.
pub(super) struct TensorNames {
    pub(super) family: BertFamily,
    /// `bert.` (or another family's) if the file holds more than the bare encoder, otherwise empty.
    prefix: &'static str,
    /// Whether norms are called `gamma` and `beta`, as TensorFlow's checkpoints had them.
    greek: bool,
}

/// Names of the parts of one encoder layer, below the layer's own name.
pub(super) struct EncoderLayerNames {
    pub(super) query: &'static str,
    pub(super) key: &'static str,
    pub(super) value: &'static str,
    pub(super) attended: &'static str,
    pub(super) attention_norm: &'static str,
    pub(super) up: &'static str,
    pub(super) down: &'static str,
    pub(super) output_norm: &'static str,
}

/// Names of BERT and RoBERTa.
const BERT: EncoderLayerNames = EncoderLayerNames {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attended: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    output_norm: "output.LayerNorm",
};

const DISTILBERT: EncoderLayerNames = EncoderLayerNames {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attended: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    output_norm: "output_layer_norm",
};

/// Parts of published files that no head here needs: heads of pre-training (`cls`, `lm_head`,
/// `vocab_*`), the pooler of a bare encoder, and index tensors.
const UNNEEDED: [&str; 8] = [
    "cls.",
    "lm_head.",
    "vocab_transform.",
    "vocab_layer_norm.",
    "vocab_projector.",
    "pooler.",
    "embeddings.position_ids",
    "embeddings.token_type_ids",
];

// === impl TensorNames ===

impl TensorNames {
    /// The names that this file uses.
    pub(super) fn new(family: BertFamily, params: &Params) -> Self {
        let prefix = match family {
            BertFamily::Bert => "bert.",
            BertFamily::Roberta => "roberta.",
            BertFamily::DistilBert => "distilbert.",
        };
        let word = "embeddings.word_embeddings.weight";
        let prefixed = params.holds(&format!("{prefix}{word}"));
        let prefix = if prefixed { prefix } else { "" };
        let greek = params.holds(&format!("{prefix}embeddings.LayerNorm.gamma"));
        Self {
            family,
            prefix,
            greek,
        }
    }

    /// Name of a part of the encoder.
    pub(super) fn encoder(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Name of a part of encoder layer `index`.
    pub(super) fn layer(&self, index: usize, part: &str) -> String {
        let layers = match self.family {
            BertFamily::Bert | BertFamily::Roberta => "encoder.layer",
            BertFamily::DistilBert => "transformer.layer",
        };
        self.encoder(&format!("{layers}.{index}.{part}"))
    }

    pub(super) fn layer_names(&self) -> &'static EncoderLayerNames {
        match self.family {
            BertFamily::Bert | BertFamily::Roberta => &BERT,
            BertFamily::DistilBert => &DISTILBERT,
        }
    }

    /// Names of scale and shift of a norm.
    pub(super) fn norm(&self) -> (&'static str, &'static str) {
        if self.greek {
            ("gamma", "beta")
        } else {
            ("weight", "bias")
        }
    }

    /// Whether no head here needs this remaining tensor.
    pub(super) fn is_unneeded(&self, name: &str) -> bool {
        let name = name.strip_prefix(self.prefix).unwrap_or(name);
        UNNEEDED.iter().any(|part| name.starts_with(part))
    }
}
