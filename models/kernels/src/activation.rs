//! The function that a layer applies to its sums.

/// A function of each value, applied after a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x`.
    None,
    /// `max(x, 0)`.
    Relu,
    /// `x / (1 + exp(-x))`.
    Silu,
}
