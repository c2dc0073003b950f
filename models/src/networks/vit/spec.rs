//! Hyper-parameters of a vision transformer.

use serde::{Deserialize, Serialize};

/// Hyper-parameters of a vision transformer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VitSpec {
    /// Lines and columns of an image. A request is `[3, size, size]`, normalised as the weights
    /// were trained.
    pub size: usize,
    /// Lines and columns of a patch; divides `size`.
    pub patch: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Values of a token.
    pub hidden: usize,
    /// Encoder layers.
    pub layers: usize,
    /// Heads of each layer; divides `hidden`.
    pub heads: usize,
    /// Values between the two halves of a layer's feed-forward network.
    pub wide: usize,
    /// Naming of the tensors in the weights file.
    pub layout: VitNaming,
    /// Encoder layers per stage; the last stage may have fewer.
    #[serde(default = "default_layers_per_stage")]
    pub layers_per_stage: usize,
}

/// Naming of a weights file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VitNaming {
    /// `vit.embeddings.cls_token`; a `config.json` next to the weights has the epsilon of norms.
    HuggingFace,
    /// `cls_token`, `blocks.0.attn.qkv`, `head`.
    Timm,
    /// `class_token`, `encoder.layers.encoder_layer_0.self_attention`, `heads.head`.
    Torchvision,
}

fn default_layers_per_stage() -> usize {
    2
}

// === impl VitSpec ===

impl VitSpec {
    /// Patches along a line.
    pub(super) fn grid(&self) -> usize {
        self.size / self.patch
    }

    /// The patches, and the class token.
    pub(super) fn tokens(&self) -> usize {
        self.grid() * self.grid() + 1
    }

    pub(super) fn stages(&self) -> usize {
        self.layers.div_ceil(self.layers_per_stage)
    }
}
