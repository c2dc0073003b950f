//! The function that a layer applies to its sums.

use crate::gates;

/// A function of each value, applied after a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x`.
    None,
    /// [`relu`].
    Relu,
    /// `x / (1 + exp(-x))`.
    Silu,
    /// [`hard_swish`](gates::hard_swish).
    HardSwish,
    /// [`gelu`](gates::gelu).
    Gelu,
    /// [`gelu_tanh`](gates::gelu_tanh).
    GeluTanh,
}

impl Activation {
    /// Applies a function that is not computed with the sums of a layer.
    pub(crate) fn of_block(self, values: &mut [f32]) {
        match self {
            Self::None | Self::Relu => {}
            Self::Silu => gates::silu(values),
            Self::HardSwish => gates::hard_swish(values),
            Self::Gelu => gates::gelu(values),
            Self::GeluTanh => gates::gelu_tanh(values),
        }
    }
}

/// `max(x, 0)`; NaN stays NaN, which [`f32::max`] would turn into a plausible 0.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}
