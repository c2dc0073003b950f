//! Tensor names of the publishers.

use super::spec::{VitNaming, VitSpec};
use crate::networks::inverted::COLOURS;

/// Names of the tensors outside the layers.
pub(super) struct VitNames {
    pub(super) class: &'static str,
    pub(super) positions: &'static str,
    pub(super) patches: &'static str,
    pub(super) norm: &'static str,
    pub(super) head: &'static str,
}

/// Names of the tensors of a layer: weights and biases.
pub(super) struct LayerNames {
    pub(super) first_norm: String,
    /// One pair for each of the matrices that are side by side.
    pub(super) qkv: Vec<[String; 2]>,
    pub(super) attended: [String; 2],
    pub(super) second_norm: String,
    pub(super) up: [String; 2],
    pub(super) down: [String; 2],
}

// === impl VitNaming ===

impl VitNaming {
    pub(super) fn names(self) -> VitNames {
        match self {
            Self::HuggingFace => VitNames {
                class: "vit.embeddings.cls_token",
                positions: "vit.embeddings.position_embeddings",
                patches: "vit.embeddings.patch_embeddings.projection",
                norm: "vit.layernorm",
                head: "classifier",
            },
            Self::Timm => VitNames {
                class: "cls_token",
                positions: "pos_embed",
                patches: "patch_embed.proj",
                norm: "norm",
                head: "head",
            },
            Self::Torchvision => VitNames {
                class: "class_token",
                positions: "encoder.pos_embedding",
                patches: "conv_proj",
                norm: "encoder.ln",
                head: "heads.head",
            },
        }
    }

    pub(super) fn layer(self, index: usize) -> LayerNames {
        let dense = |name: String| [format!("{name}.weight"), format!("{name}.bias")];
        match self {
            Self::HuggingFace => {
                let at = format!("vit.encoder.layer.{index}");
                let parts = ["query", "key", "value"];
                LayerNames {
                    first_norm: format!("{at}.layernorm_before"),
                    qkv: parts
                        .map(|part| dense(format!("{at}.attention.attention.{part}")))
                        .to_vec(),
                    attended: dense(format!("{at}.attention.output.dense")),
                    second_norm: format!("{at}.layernorm_after"),
                    up: dense(format!("{at}.intermediate.dense")),
                    down: dense(format!("{at}.output.dense")),
                }
            }
            Self::Timm => {
                let at = format!("blocks.{index}");
                LayerNames {
                    first_norm: format!("{at}.norm1"),
                    qkv: vec![dense(format!("{at}.attn.qkv"))],
                    attended: dense(format!("{at}.attn.proj")),
                    second_norm: format!("{at}.norm2"),
                    up: dense(format!("{at}.mlp.fc1")),
                    down: dense(format!("{at}.mlp.fc2")),
                }
            }
            Self::Torchvision => {
                let at = format!("encoder.layers.encoder_layer_{index}");
                let joined = ["weight", "bias"];
                LayerNames {
                    first_norm: format!("{at}.ln_1"),
                    qkv: vec![joined.map(|part| format!("{at}.self_attention.in_proj_{part}"))],
                    attended: dense(format!("{at}.self_attention.out_proj")),
                    second_norm: format!("{at}.ln_2"),
                    up: dense(format!("{at}.mlp.0")),
                    down: dense(format!("{at}.mlp.3")),
                }
            }
        }
    }
}

// === impl VitSpec ===

impl VitSpec {
    /// Names and shapes of all tensors of its weights file.
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, wide, patch) = (self.hidden, self.wide, self.patch);
        let mut tensors = Vec::new();
        let mut dense = |[weight, bias]: [String; 2], shape: &[usize]| {
            tensors.push((weight, shape.to_vec()));
            tensors.push((bias, vec![shape[0]]));
        };
        let parts = |name: &str| [format!("{name}.weight"), format!("{name}.bias")];
        let names = self.layout.names();
        dense(parts(names.patches), &[hidden, COLOURS, patch, patch]);
        for index in 0..self.layers {
            let layer = self.layout.layer(index);
            let each = 3 * hidden / layer.qkv.len();
            dense(parts(&layer.first_norm), &[hidden]);
            dense(parts(&layer.second_norm), &[hidden]);
            for names in layer.qkv {
                dense(names, &[each, hidden]);
            }
            dense(layer.attended, &[hidden, hidden]);
            dense(layer.up, &[wide, hidden]);
            dense(layer.down, &[hidden, wide]);
        }
        dense(parts(names.norm), &[hidden]);
        dense(parts(names.head), &[self.classes, hidden]);
        tensors.push((names.class.to_owned(), vec![1, 1, hidden]));
        tensors.push((names.positions.to_owned(), vec![1, self.tokens(), hidden]));
        tensors
    }
}
