//! Hyper-parameters of an EfficientNet.

use serde::{Deserialize, Serialize};

use crate::networks::inverted::{ImagePadding, TensorNaming};

/// Channels are rounded to multiples of this.
const DIVISOR: usize = 8;

/// Hyper-parameters of an EfficientNet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNetSpec {
    /// Member of the family.
    pub scale: EfficientNetScale,
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
pub enum EfficientNetScale {
    B0,
    B1,
    B2,
    B3,
    B4,
    B5,
    B6,
    B7,
}

fn default_slices() -> usize {
    8
}

// === impl EfficientNetScale ===

impl EfficientNetScale {
    /// Widths and depths relative to B0's, in tenths (the paper's code, `efficientnet_params`).
    fn factors(self) -> (usize, usize) {
        match self {
            Self::B0 => (10, 10),
            Self::B1 => (10, 11),
            Self::B2 => (11, 12),
            Self::B3 => (12, 14),
            Self::B4 => (14, 18),
            Self::B5 => (16, 22),
            Self::B6 => (18, 26),
            Self::B7 => (20, 31),
        }
    }

    /// As the paper's code rounds: to the nearest multiple of 8, but never down by more than a
    /// tenth.
    pub(super) fn channels(self, of_b0: usize) -> usize {
        let tenths = of_b0 * self.factors().0;
        let half = 10 * DIVISOR / 2;
        let rounded = ((tenths + half) / (10 * DIVISOR) * DIVISOR).max(DIVISOR);
        if rounded * 100 < tenths * 9 {
            return rounded + DIVISOR;
        }
        rounded
    }

    pub(super) fn blocks(self, of_b0: usize) -> usize {
        (of_b0 * self.factors().1).div_ceil(10)
    }
}

// === impl EfficientNetSpec ===

impl EfficientNetSpec {
    /// Added to a variance by the normalisation that the weights were trained with.
    pub(super) fn epsilon(&self) -> f64 {
        use EfficientNetScale::{B5, B6, B7};
        match (self.layout, self.scale, self.padding) {
            (TensorNaming::Torchvision, B5 | B6 | B7, _) => 1e-3,
            (TensorNaming::Timm, _, ImagePadding::Same) => 1e-3,
            _ => 1e-5,
        }
    }
}
