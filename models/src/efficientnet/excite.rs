//! Squeeze-and-excitation: channels scaled by what the whole picture says of them (Hu et al.,
//! "Squeeze-and-excitation networks", 2018).

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use crate::device::has_kernels;
use crate::flow::{Flow, other_mode};
use crate::kernels::{Activation, gates};
use crate::layers::Linear;
use crate::unfold2d::contiguous;

pub(super) struct Excite {
    pub(super) squeeze: Linear,
    pub(super) widen: Linear,
}

/// `[batch, height, width, channels]` times `[batch, channels]`.
struct ScaleChannels;

// === impl Excite ===

impl Excite {
    pub(super) fn forward(&self, x: Flow) -> Result<Flow> {
        let squeezed = self
            .squeeze
            .forward_rows(&x.mean_pool()?, Activation::Silu)?;
        let widened = self.widen.forward_rows(&squeezed, Activation::None)?;
        match (x, widened.sigmoid()?) {
            (Flow::Graph(x), Flow::Graph(gates)) => scale(&x, &gates).map(Flow::Graph),
            (Flow::Packed(mut x), Flow::Packed(gates)) => {
                gates::scale(&mut x, &gates)?;
                Ok(Flow::Packed(x))
            }
            _ => other_mode(),
        }
    }
}

/// `[batch, height, width, channels]` times `[batch, channels]`.
fn scale(x: &Tensor, gates: &Tensor) -> Result<Tensor> {
    if has_kernels(x) {
        // candle's broadcast finds each factor by its index.
        return x
            .contiguous()?
            .apply_op2_no_bwd(&gates.contiguous()?, &ScaleChannels);
    }
    x.broadcast_mul(&gates.unsqueeze(1)?.unsqueeze(1)?)
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
        gates: &CpuStorage,
        gates_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, height, width, channels) = x_layout.shape().dims4()?;
        if gates_layout.shape().dims() != [batch, channels] {
            candle_core::bail!("gates are {:?}", gates_layout.shape());
        }
        let mut scaled = contiguous(x, x_layout)?.to_vec();
        let gates = contiguous(gates, gates_layout)?;
        let pictures = scaled.chunks_exact_mut((height * width * channels).max(1));
        for (picture, gates) in pictures.zip(gates.chunks_exact(channels.max(1))) {
            for position in picture.chunks_exact_mut(channels) {
                for (value, gate) in position.iter_mut().zip(gates) {
                    *value *= gate;
                }
            }
        }
        Ok((CpuStorage::F32(scaled), x_layout.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;

    use super::*;

    #[test]
    fn channels_are_scaled_as_by_a_broadcast() {
        let x = Tensor::randn(0f32, 1.0, (2, 3, 2, 4), &Device::Cpu).unwrap();
        let gates = Tensor::randn(0f32, 1.0, (2, 4), &Device::Cpu).unwrap();
        let ours = x.apply_op2_no_bwd(&gates, &ScaleChannels).unwrap();
        let broadcast = gates.reshape((2, 1, 1, 4)).unwrap();
        let theirs = x.broadcast_mul(&broadcast).unwrap();
        let numbers = |t: &Tensor| t.flatten_all().and_then(|t| t.to_vec1::<f32>()).unwrap();
        assert_eq!(numbers(&ours), numbers(&theirs));
    }
}
