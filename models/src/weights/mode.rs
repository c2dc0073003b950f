//! The way in which a network computes.

/// Decided where parameters come from ([`Params`](super::params::Params)). Layers pack their
/// weights for it as they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComputeMode {
    /// By candle's operations and this project's operations with gradients: training, and every
    /// device but a CPU.
    Graph,
    /// By the kernels of `switchyard-kernels`, on packed weights.
    Packed,
}
