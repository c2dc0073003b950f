//! Self-attention of the texts of a batch.

use candle_core::{DType, Result, Tensor};
use switchyard_kernels::FeatureMap;
use switchyard_kernels::attention::{Heads, attend};

use super::flow::Flow;

/// Added to the scores of padding. Its weight after the softmax is exactly 0, and nothing overflows
/// in a row of padding only.
const MASKED: f64 = -1e9;

/// The same in half precision, whose largest value is 65,504.
const MASKED_HALF: f64 = -6e4;

/// The tokens of each text that count, for all layers.
pub(crate) enum AttentionMask {
    /// Texts lie one after the other without padding: `[tokens, 1, 1, channels]`. Their lengths.
    Lengths(Vec<usize>),
    /// `[texts, tokens, channels]`. Added to scores `[texts, heads, tokens, tokens]`.
    Bias(Tensor),
}

impl AttentionMask {
    /// From `[texts, tokens]`, 1 for a token and 0 for padding.
    pub(crate) fn of_tokens(mask: &Tensor) -> Result<Self> {
        let masked = match mask.dtype() {
            DType::F16 => MASKED_HALF,
            _ => MASKED,
        };
        // 0 for a token.
        let bias = ((mask - 1.0)? * -masked)?;
        bias.unsqueeze(1)?.unsqueeze(1).map(Self::Bias)
    }

    /// From queries, keys and values side by side, `3 * width` channels, to the mixed values of all
    /// heads, `width` channels.
    pub(crate) fn attend(&self, qkv: &Flow, heads: usize) -> Result<Flow> {
        match self {
            Self::Lengths(lengths) => {
                let qkv = qkv.as_map()?;
                let [tokens, _, _, all] = qkv.dims();
                if lengths.iter().sum::<usize>() != tokens {
                    candle_core::bail!("{tokens} tokens, texts of {lengths:?}");
                }
                let heads = Heads {
                    count: heads,
                    depth: all / 3 / heads,
                };
                let mut mixed = FeatureMap::new([tokens, 1, 1, all / 3]);
                attend(&qkv.values, lengths, heads, &mut mixed.values);
                Ok(Flow::Packed(mixed))
            }
            Self::Bias(bias) => {
                let qkv = qkv.as_tensor()?;
                let (texts, tokens, all) = qkv.dims3()?;
                let (width, depth) = (all / 3, all / 3 / heads);
                composed(qkv, bias, [texts, tokens, width, heads, depth]).map(Flow::Graph)
            }
        }
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
    let Flow::Graph(x) = qkv else {
        return AttentionMask::Lengths(vec![tokens; sequences]).attend(qkv, heads);
    };
    let mask = Tensor::ones((sequences, tokens), x.dtype(), x.device())?;
    let qkv = Flow::Graph(x.reshape((sequences, tokens, all))?);
    let mixed = AttentionMask::of_tokens(&mask)?.attend(&qkv, heads)?;
    mixed
        .as_tensor()?
        .reshape((rows, 1, 1, width))
        .map(Flow::Graph)
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
    use candle_core::Device;

    use super::super::tensors::to_map;
    use super::super::testing::values;
    use super::*;

    #[test]
    fn the_kernel_and_candles_operations_agree() {
        let (texts, tokens, heads, depth) = (3, 19, 4, 8);
        let all = 3 * heads * depth;
        let lengths = vec![tokens, 7, 1];
        let qkv = Tensor::randn(0f32, 1.0, (texts, tokens, all), &Device::Cpu).unwrap();
        let mask = (0..texts * tokens).map(|i| u8::from(i % tokens < lengths[i / tokens]));
        let mask = Tensor::from_iter(mask.map(f32::from), &Device::Cpu).unwrap();
        let mask = AttentionMask::of_tokens(&mask.reshape((texts, tokens)).unwrap()).unwrap();
        let theirs = mask.attend(&Flow::Graph(qkv.clone()), heads).unwrap();
        let rows = |x: &Tensor| {
            let texts = lengths.iter().enumerate();
            let texts = texts.map(|(i, length)| x.get(i).unwrap().narrow(0, 0, *length).unwrap());
            Tensor::cat(&texts.collect::<Vec<_>>(), 0).unwrap()
        };
        let packed = to_map(&rows(&qkv), [tokens + 8, 1, 1, all]).unwrap();
        let mask = AttentionMask::Lengths(lengths.clone());
        let ours = mask.attend(&Flow::Packed(packed), heads).unwrap();
        let ours = values(&ours.into_rows().unwrap());
        let theirs = values(&rows(theirs.as_tensor().unwrap()));
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!((ours - theirs).abs() < 1e-5, "{ours} {theirs}");
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_an_error() {
        let mask = AttentionMask::Lengths(vec![2, 3]);
        let qkv = Flow::Packed(FeatureMap::new([6, 1, 1, 12]));
        assert!(mask.attend(&qkv, 2).is_err());
    }
}
