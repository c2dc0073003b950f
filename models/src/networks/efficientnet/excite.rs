//! Squeeze-and-excitation: channels scaled by gates that a small network computes from the whole
//! image (Hu et al., "Squeeze-and-excitation networks", 2018).

use candle_core::Result;
use switchyard_kernels::Activation;

use crate::ops::flow::Flow;
use crate::ops::layers::Linear;

/// The small network.
pub(super) struct Excite {
    pub(super) squeeze: Linear,
    pub(super) widen: Linear,
}

// === impl Excite ===

impl Excite {
    pub(super) fn forward(&self, x: Flow) -> Result<Flow> {
        let squeezed = self
            .squeeze
            .forward_rows(&x.mean_pool()?, Activation::Silu)?;
        let widened = self.widen.forward_rows(&squeezed, Activation::None)?;
        x.scale_channels(&widened.sigmoid()?)
    }
}
