//! Self-attention of the texts of a batch.

use candle_core::{DType, Device, Result, Tensor};
use rayon::prelude::*;
use switchyard_kernels::FeatureMap;
use switchyard_kernels::attention::{Head, attend};

use super::device::has_kernels;
use super::flow::Flow;
use super::tensors::with_values;

/// Added to the scores of padding. Its weight after the softmax is exactly 0, and nothing overflows
/// in a row of padding only.
const MASKED: f64 = -1e9;

/// The same in half precision, whose largest value is 65,504.
const MASKED_HALF: f64 = -6e4;

/// The tokens of each text that count, for all layers.
pub(crate) struct AttentionMask {
    /// `[texts, tokens]`, 1 for a token and 0 for padding.
    mask: Tensor,
    /// Added to scores `[texts, heads, tokens, tokens]`, for devices without a kernel of this project.
    bias: Option<Tensor>,
}

// === impl AttentionMask ===

impl AttentionMask {
    pub(crate) fn new(mask: &Tensor) -> Result<Self> {
        let masked = match mask.dtype() {
            DType::F16 => MASKED_HALF,
            _ => MASKED,
        };
        let bias = match has_kernels(mask) {
            true => None,
            // 0 for a token.
            false => Some(((mask - 1.0)? * -masked)?.unsqueeze(1)?.unsqueeze(1)?),
        };
        Ok(Self {
            mask: mask.clone(),
            bias,
        })
    }

    /// From queries, keys and values side by side, `[texts, tokens, 3 * width]`, to the mixed values
    /// of all heads, `[texts, tokens, width]`.
    pub(crate) fn attend(&self, qkv: &Tensor, heads: usize) -> Result<Tensor> {
        let (texts, tokens, all) = qkv.dims3()?;
        let (width, depth) = (all / 3, all / 3 / heads);
        if let Some(bias) = &self.bias {
            return composed(qkv, bias, [texts, tokens, width, heads, depth]);
        }
        let mixed = with_values(qkv, |qkv| {
            with_values(&self.mask, |mask| {
                fused(qkv, mask, [texts, tokens, heads, depth])
            })
        })??;
        Tensor::from_vec(mixed, (texts, tokens, width), &Device::Cpu)
    }
}

/// Self-attention of sequences of one length, all of whose tokens count: from queries, keys and values
/// side by side, `[sequences * tokens, 1, 1, 3 * width]`, to `[sequences * tokens, 1, 1, width]`.
pub(crate) fn attend_all(qkv: &Flow, tokens: usize, heads: usize) -> Result<Flow> {
    let [rows, .., all] = qkv.dims4()?;
    let (sequences, width) = (rows / tokens.max(1), all / 3);
    if rows != sequences * tokens || all != width / heads * heads * 3 {
        candle_core::bail!("{:?} in sequences of {tokens}, {heads} heads", qkv.dims4()?);
    }
    match qkv {
        Flow::Graph(x) => {
            let mask = Tensor::ones((sequences, tokens), x.dtype(), x.device())?;
            let qkv = x.reshape((sequences, tokens, all))?;
            let mixed = AttentionMask::new(&mask)?.attend(&qkv, heads)?;
            mixed.reshape((rows, 1, 1, width)).map(Flow::Graph)
        }
        Flow::Packed(map) => {
            let mask = vec![1.0; rows];
            let shape = [sequences, tokens, heads, width / heads];
            let mut mixed = FeatureMap::new([rows, 1, 1, width]);
            mixed
                .values
                .copy_from_slice(&fused(&map.values, &mask, shape));
            Ok(Flow::Packed(mixed))
        }
    }
}

/// With the kernel; the threads of the current pool share the heads.
fn fused(qkv: &[f32], mask: &[f32], [texts, tokens, heads, depth]: [usize; 4]) -> Vec<f32> {
    let width = heads * depth;
    let of_head = |i: usize| {
        let (text, head) = (i / heads, i % heads);
        let mut out = vec![0.0; tokens * depth];
        let head = Head {
            qkv: &qkv[text * tokens * 3 * width..][..tokens * 3 * width],
            mask: &mask[text * tokens..][..tokens],
            heads,
            depth,
            head,
        };
        attend(head, &mut out);
        out
    };
    let all: Vec<Vec<f32>> = match rayon::current_num_threads() {
        1 => (0..texts * heads).map(of_head).collect(),
        _ => (0..texts * heads).into_par_iter().map(of_head).collect(),
    };
    let mut mixed = vec![0.0; texts * tokens * width];
    for (i, values) in all.iter().enumerate() {
        let (text, head) = (i / heads, i % heads);
        let rows = mixed[text * tokens * width..][..tokens * width].chunks_exact_mut(width);
        for (row, values) in rows.zip(values.chunks_exact(depth)) {
            row[head * depth..][..depth].copy_from_slice(values);
        }
    }
    mixed
}

/// From candle's own operations.
fn composed(
    qkv: &Tensor,
    bias: &Tensor,
    [texts, tokens, width, heads, depth]: [usize; 5],
) -> Result<Tensor> {
    let qkv = qkv
        .reshape((texts, tokens, 3, heads, depth))?
        .permute((2, 0, 3, 1, 4))?
        .contiguous()?;
    let part = |i| qkv.narrow(0, i, 1)?.squeeze(0);
    let (query, key, value) = (part(0)?, part(1)?, part(2)?);
    let scores = (query.matmul(&key.t()?)? * (depth as f64).sqrt().recip())?;
    let shares = candle_nn::ops::softmax_last_dim(&scores.broadcast_add(bias)?)?;
    shares
        .matmul(&value)?
        .transpose(1, 2)?
        .reshape((texts, tokens, width))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::device::standing_in;
    use super::super::testing::values;
    use super::*;

    #[test]
    fn the_kernel_and_candles_operations_agree() {
        let (texts, tokens, heads, depth) = (3, 19, 4, 8);
        let shape = (texts, tokens, 3 * heads * depth);
        let qkv = Tensor::randn(0f32, 1.0, shape, &Device::Cpu).unwrap();
        // The second text is shorter, and the third has no token.
        let mask = (0..texts * tokens).map(|i| f32::from(u8::from(i < tokens + 7)));
        let mask = Tensor::from_iter(mask, &Device::Cpu).unwrap();
        let mask = mask.reshape((texts, tokens)).unwrap();
        let attended = || AttentionMask::new(&mask)?.attend(&qkv, heads);
        let (ours, theirs) = (attended().unwrap(), standing_in(attended).unwrap());
        assert_eq!(ours.dims(), theirs.dims());
        for (ours, theirs) in values(&ours).iter().zip(values(&theirs)) {
            assert!((ours - theirs).abs() < 1e-5, "{ours} {theirs}");
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(3)
            .build()
            .unwrap();
        let shared = pool.install(attended).unwrap();
        assert_eq!(values(&shared), values(&ours), "on any number of threads");
    }
}
