//! One encoder layer, with its norms in front.

use candle_core::Result;
use switchyard_kernels::Activation;

use super::spec::VitSpec;
use crate::error::ModelError;
use crate::networks::published::pointwise;
use crate::ops::attention::attend_all;
use crate::ops::flow::Flow;
use crate::ops::layers::{ChannelNorm, Conv2d};
use crate::weights::params::Params;

/// `x + attended(attention(norm(x)))`, then `x + down(gelu(up(norm(x))))`.
pub(super) struct VitLayer {
    heads: usize,
    tokens: usize,
    first_norm: ChannelNorm,
    /// Query, key and value side by side: one product instead of three.
    qkv: Conv2d,
    attended: Conv2d,
    second_norm: ChannelNorm,
    up: Conv2d,
    down: Conv2d,
}

// === impl VitLayer ===

impl VitLayer {
    pub(super) fn new(
        params: &mut Params,
        spec: &VitSpec,
        index: usize,
        epsilon: f64,
    ) -> std::result::Result<Self, ModelError> {
        let names = spec.layout.layer(index);
        let (hidden, wide) = (spec.hidden, spec.wide);
        let each = 3 * hidden / names.qkv.len();
        let first_norm = ChannelNorm::new(params, &names.first_norm, hidden, epsilon)?;
        let second_norm = ChannelNorm::new(params, &names.second_norm, hidden, epsilon)?;
        Ok(Self {
            heads: spec.heads,
            tokens: spec.tokens(),
            first_norm,
            qkv: pointwise(params, &names.qkv, [hidden, each])?,
            attended: pointwise(params, &[names.attended], [hidden, hidden])?,
            second_norm,
            up: pointwise(params, &[names.up], [hidden, wide])?,
            down: pointwise(params, &[names.down], [wide, hidden])?,
        })
    }

    /// Tokens as images of one position, `[batch * tokens, 1, 1, hidden]`.
    pub(super) fn forward(&self, x: &Flow) -> Result<Flow> {
        let qkv = self
            .qkv
            .forward(&self.first_norm.forward(x)?, Activation::None)?;
        let mixed = attend_all(&qkv, self.tokens, self.heads)?;
        let x = self.attended.forward_onto(&mixed, x, Activation::None)?;
        let wide = self
            .up
            .forward(&self.second_norm.forward(&x)?, Activation::Gelu)?;
        self.down.forward_onto(&wide, &x, Activation::None)
    }
}
