//! Channels of images scaled by factors.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};
use switchyard_kernels::gates;

use super::device::has_kernels;
use super::tensors::contiguous;

/// `[batch, height, width, channels]` times `[batch, channels]`.
struct ScaleChannels;

/// `[batch, height, width, channels]` times `[batch, channels]`, without a gradient.
pub(crate) fn scale_channels(x: &Tensor, factors: &Tensor) -> Result<Tensor> {
    if has_kernels(x) {
        // candle's broadcast finds each factor by its index.
        return x
            .contiguous()?
            .apply_op2_no_bwd(&factors.contiguous()?, &ScaleChannels);
    }
    x.broadcast_mul(&factors.unsqueeze(1)?.unsqueeze(1)?)
}

// === impl ScaleChannels ===

impl CustomOp2 for ScaleChannels {
    fn name(&self) -> &'static str {
        "scale-channels"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        factors: &CpuStorage,
        factors_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, height, width, channels) = x_layout.shape().dims4()?;
        if factors_layout.shape().dims() != [batch, channels] {
            candle_core::bail!("factors are {:?}", factors_layout.shape());
        }
        let mut scaled = contiguous(x, x_layout)?.to_vec();
        let factors = contiguous(factors, factors_layout)?;
        gates::scale_values(&mut scaled, factors, height * width * channels, channels);
        Ok((CpuStorage::F32(scaled), x_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;

    use super::super::testing::values;
    use super::*;

    #[test]
    fn channels_are_scaled_as_by_a_broadcast() {
        let x = Tensor::randn(0f32, 1.0, (2, 3, 2, 4), &Device::Cpu).unwrap();
        let factors = Tensor::randn(0f32, 1.0, (2, 4), &Device::Cpu).unwrap();
        let ours = scale_channels(&x, &factors).unwrap();
        let broadcast = factors.reshape((2, 1, 1, 4)).unwrap();
        let theirs = x.broadcast_mul(&broadcast).unwrap();
        assert_eq!(values(&ours), values(&theirs));
    }
}
