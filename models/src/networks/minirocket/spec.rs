//! Hyper-parameters of MiniRocket, and the names of its tensors.

use serde::{Deserialize, Serialize};

use super::convolutions::DilationPlan;

/// Gain of each channel in each combination of dilation and kernel, `[combinations, channels]`.
pub(super) const CHANNELS: &str = "channels";
/// Threshold of each feature's convolution, `[features]`.
pub(super) const BIASES: &str = "biases";
/// Means of the features over training data, `[features]`.
pub(super) const MEANS: &str = "means";
/// One over their standard deviations, `[features]`.
pub(super) const SCALES: &str = "scales";

/// Hyper-parameters of [`MiniRocket`](super::MiniRocket).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MiniRocketSpec {
    /// Moments of one window.
    pub length: usize,
    /// Values per moment, neighbours in memory.
    pub axes: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Features of each of the 84 kernels, spread over its dilations.
    pub features_per_kernel: usize,
    /// Stages into which the dilations are cut; at most as many as there are dilations.
    pub stages: usize,
}

// === impl MiniRocketSpec ===

impl MiniRocketSpec {
    pub(super) fn plan(&self) -> DilationPlan {
        DilationPlan::new(self.length, self.features_per_kernel)
    }
}
