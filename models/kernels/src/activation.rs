//! The function that a layer applies to its sums.

/// A function of each value, applied after a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x`.
    None,
    /// [`relu`].
    Relu,
    /// `x / (1 + exp(-x))`.
    Silu,
}

/// `max(x, 0)`; NaN stays NaN, which [`f32::max`] would turn into a plausible 0.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}
