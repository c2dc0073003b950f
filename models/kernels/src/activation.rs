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
    /// `x` times [`hard_sigmoid`].
    HardSwish,
}

/// `x / 6 + 1 / 2`, at least 0 and at most 1.
#[inline(always)]
pub fn hard_sigmoid(x: f32) -> f32 {
    // `clamp` keeps NaN.
    (x / 6.0 + 0.5).clamp(0.0, 1.0)
}

/// `max(x, 0)`; NaN stays NaN, which [`f32::max`] would turn into a plausible 0.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}
