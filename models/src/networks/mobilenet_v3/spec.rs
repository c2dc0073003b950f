//! Hyper-parameters of a MobileNetV3.

use serde::{Deserialize, Serialize};

use crate::networks::inverted::{ImagePadding, TensorNaming};

/// Hyper-parameters of a MobileNetV3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetV3Spec {
    /// Member of the family.
    pub scale: MobileNetV3Scale,
    /// Lines and columns of an image. A request is `[3, size, size]`, normalised as the weights
    /// were trained.
    pub size: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Naming of the tensors in the weights file.
    pub layout: TensorNaming,
    /// Zeros around images; `same` for timm's `tf_` weights.
    #[serde(default, skip_serializing_if = "ImagePadding::is_centred")]
    pub padding: ImagePadding,
    /// Least number of stages, if the network has that many blocks.
    #[serde(default = "default_slices")]
    pub slices: usize,
}

/// Member of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the paper's own")]
pub enum MobileNetV3Scale {
    Large,
    Small,
}

fn default_slices() -> usize {
    6
}

impl MobileNetV3Spec {
    /// Added to a variance by the normalisation that the weights were trained with.
    pub(super) fn epsilon(&self) -> f64 {
        match (self.layout, self.padding) {
            (TensorNaming::Timm, ImagePadding::Centred) => 1e-5,
            _ => 1e-3,
        }
    }
}
