//! The weights of a matrix product, in fewer bits than they were trained in.
//!
//! Only the weights of products (convolutions over all channels, dense layers) are narrowed; they
//! are nearly all of a network. Depthwise convolutions, norms, tables of embeddings and a
//! transform's constants stay as they are.
//!
//! On a CPU the kernels multiply 8 bits and bf16 directly: weights are rounded as they are packed,
//! activations as they arrive. On other devices, and in half precision, a layer widens its weights
//! while it runs: activations and sums are f32; the rounding of the weights is lost, memory is
//! saved. `docs/models.md` has the measurements.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Result, Shape, Tensor};

use super::mode::ComputeMode;
use super::precision::Precision;

/// Weights of a product, kept in a [`Precision`].
pub(crate) enum ProductWeights {
    Full(Tensor),
    /// Of either 16 bits.
    Half(Tensor),
    Int8(Int8Blocks),
    /// As trained: the CPU's kernels round them as they pack them, and drop them.
    ToPack(Tensor, Precision),
}

/// All values one after the other, padded to whole blocks: a block's scale then spans neighbouring
/// output channels of one input, for any shape.
pub(crate) struct Int8Blocks {
    blocks: Arc<QTensor>,
    shape: Shape,
}

/// Refuses values that are too large for a precision.
pub(crate) fn too_large(full: &Tensor, narrow: Precision) -> Result<()> {
    let largest = full.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    if largest > narrow.largest() {
        candle_core::bail!("{largest} is too large for {narrow:?}");
    }
    Ok(())
}

// === impl ProductWeights ===

impl ProductWeights {
    /// Rounds `full` to `precision`, or keeps it for the kernels to pack.
    ///
    /// # Errors
    /// A value is too large for the precision.
    pub(crate) fn new(full: Tensor, precision: Precision, mode: ComputeMode) -> Result<Self> {
        if precision.is_reduced() {
            too_large(&full, precision)?;
        }
        if mode == ComputeMode::Packed {
            return Ok(Self::ToPack(full, precision));
        }
        match precision {
            Precision::F32 => Ok(Self::Full(full)),
            Precision::F16 => Ok(Self::Half(full.to_dtype(DType::F16)?)),
            Precision::Bf16 => Ok(Self::Half(full.to_dtype(DType::BF16)?)),
            Precision::Int8 => Int8Blocks::new(&full).map(Self::Int8),
        }
    }

    /// The precision they are kept in.
    pub(crate) fn precision(&self) -> Precision {
        match self {
            Self::Full(_) => Precision::F32,
            Self::Half(half) if half.dtype() == DType::BF16 => Precision::Bf16,
            Self::Half(_) => Precision::F16,
            Self::Int8(_) => Precision::Int8,
            Self::ToPack(_, precision) => *precision,
        }
    }

    /// As an f32 tensor to be multiplied or packed. Full precision is not copied.
    pub(crate) fn widen(&self) -> Result<Tensor> {
        match self {
            Self::Full(full) | Self::ToPack(full, _) => Ok(full.clone()),
            Self::Half(half) => half.to_dtype(DType::F32),
            Self::Int8(int8) => int8.widen(),
        }
    }

    /// Bytes they take where they are kept.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Full(tensor) | Self::Half(tensor) => {
                tensor.elem_count() * tensor.dtype().size_in_bytes()
            }
            Self::Int8(int8) => int8.blocks.storage_size_in_bytes(),
            Self::ToPack(tensor, precision) => {
                let outputs = tensor.dims().last().copied().unwrap_or_default();
                match precision {
                    // In addition to the bytes, a scale and a sum for each output.
                    Precision::Int8 => tensor.elem_count() + 2 * size_of::<f32>() * outputs,
                    // Biases, the last row, keep their lower half too.
                    Precision::Bf16 => (tensor.elem_count() + outputs) * size_of::<u16>(),
                    Precision::F32 | Precision::F16 => tensor.elem_count() * size_of::<f32>(),
                }
            }
        };
        bytes as u64
    }
}

impl From<Tensor> for ProductWeights {
    fn from(full: Tensor) -> Self {
        Self::Full(full)
    }
}

// === impl Int8Blocks ===

impl Int8Blocks {
    fn new(full: &Tensor) -> Result<Self> {
        let flat = full.flatten_all()?;
        let count = flat.elem_count();
        let block = GgmlDType::Q8_0.block_size();
        let padded = flat.pad_with_zeros(0, 0, count.next_multiple_of(block) - count)?;
        Ok(Self {
            blocks: Arc::new(QTensor::quantize(&padded, GgmlDType::Q8_0)?),
            shape: full.shape().clone(),
        })
    }

    fn widen(&self) -> Result<Tensor> {
        self.blocks
            .dequantize(&self.blocks.device())?
            .narrow(0, 0, self.shape.elem_count())?
            .reshape(&self.shape)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;
    use switchyard_kernels::bf16;

    use super::*;

    /// Rounded to half the last place of 11 bits, of 8, and to half a 127th of a block's largest.
    #[test]
    fn weights_are_rounded_and_no_more() {
        let full = Tensor::randn(0f32, 1.0, (37, 5), &Device::Cpu).unwrap();
        let values = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let largest = values(&full).iter().fold(0f32, |a, b| a.max(b.abs()));
        // A scale is a half-precision value too.
        let int8 = largest / 127.0 * 0.51 + largest * 1e-3;
        let bounds = [
            (Precision::F32, 0.0, 37 * 5 * 4),
            (Precision::F16, largest / 2048.0, 37 * 5 * 2),
            (Precision::Bf16, largest / 256.0, 37 * 5 * 2),
            (Precision::Int8, int8, 192 / 32 * 34),
        ];
        for (precision, bound, bytes) in bounds {
            let weights = ProductWeights::new(full.clone(), precision, ComputeMode::Graph).unwrap();
            let widened = weights.widen().unwrap();
            assert_eq!(widened.shape(), full.shape());
            assert_eq!(weights.bytes(), bytes, "{precision}");
            let pairs = values(&full).into_iter().zip(values(&widened));
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(worst <= bound, "{precision}: {worst} over {bound}");
            assert_eq!(worst > 0.0, precision.is_reduced());
        }
    }

    #[test]
    fn weights_that_are_too_large_are_refused() {
        let kept = [
            (Precision::F16, 65504.0),
            (Precision::Bf16, bf16::LARGEST),
            (Precision::Int8, 65504.0),
        ];
        for (precision, largest) in kept {
            for (value, is_kept) in [
                (largest, true),
                (-largest, true),
                (largest.next_up(), false),
                (f32::NEG_INFINITY, false),
            ] {
                let full = Tensor::new(&[0.5, value], &Device::Cpu).unwrap();
                for mode in [ComputeMode::Graph, ComputeMode::Packed] {
                    let weights = ProductWeights::new(full.clone(), precision, mode);
                    assert_eq!(weights.is_ok(), is_kept, "{precision} {value}");
                    assert!(weights.is_err() || weights.unwrap().precision() == precision);
                }
            }
        }
    }
}
