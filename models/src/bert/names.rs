//! What the families call their tensors.

use super::config::Family;
use crate::params::Params;

/// Tensor names of one file.
pub(super) struct Names {
    pub(super) family: Family,
    /// `bert.` where the file holds more than the bare encoder, else empty.
    prefix: &'static str,
    /// Whether norms are called `gamma` and `beta`, as TensorFlow's checkpoints had them.
    greek: bool,
}

/// Names of one encoder layer's parts, below its own.
pub(super) struct LayerNames {
    pub(super) query: &'static str,
    pub(super) key: &'static str,
    pub(super) value: &'static str,
    pub(super) attended: &'static str,
    pub(super) attention_norm: &'static str,
    pub(super) up: &'static str,
    pub(super) down: &'static str,
    pub(super) output_norm: &'static str,
}

/// BERT's and RoBERTa's.
const BERT: LayerNames = LayerNames {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attended: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    output_norm: "output.LayerNorm",
};

const DISTILBERT: LayerNames = LayerNames {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attended: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    output_norm: "output_layer_norm",
};

/// Parts of published files that no head here needs: those of pre-training (`cls`, `lm_head`,
/// `vocab_*`), the pooler of a bare encoder, and counters that are no weights.
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

// === impl Names ===

impl Names {
    /// The names as this file has them.
    pub(super) fn new(family: Family, params: &Params) -> Self {
        let prefix = match family {
            Family::Bert => "bert.",
            Family::Roberta => "roberta.",
            Family::DistilBert => "distilbert.",
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

    /// Something of the encoder.
    pub(super) fn encoder(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Something of encoder layer `index`.
    pub(super) fn layer(&self, index: usize, part: &str) -> String {
        let layers = match self.family {
            Family::Bert | Family::Roberta => "encoder.layer",
            Family::DistilBert => "transformer.layer",
        };
        self.encoder(&format!("{layers}.{index}.{part}"))
    }

    pub(super) fn layer_names(&self) -> &'static LayerNames {
        match self.family {
            Family::Bert | Family::Roberta => &BERT,
            Family::DistilBert => &DISTILBERT,
        }
    }

    /// Scale and shift of a norm.
    pub(super) fn norm(&self) -> (&'static str, &'static str) {
        if self.greek {
            ("gamma", "beta")
        } else {
            ("weight", "bias")
        }
    }

    /// Whether a tensor left over is one that no head here needs.
    pub(super) fn is_unneeded(&self, name: &str) -> bool {
        let name = name.strip_prefix(self.prefix).unwrap_or(name);
        UNNEEDED.iter().any(|part| name.starts_with(part))
    }
}
