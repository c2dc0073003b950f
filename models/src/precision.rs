//! Weights in fewer bits than they were trained in.
//!
//! What is narrowed are the weights of products (convolutions over all channels, dense layers),
//! which are nearly all of a network; depthwise convolutions, norms, tables of embeddings and a
//! transform's constants stay as they are.
//!
//! On a CPU 8 bits are multiplied as such (`kernels::int8`): weights are rounded with a scale for
//! each output as they are packed, activations as they come. So are 16 bits that are bf16
//! (`kernels::dense`). Elsewhere, and in half precision, a layer's weights are widened when it runs,
//! for as long as it does: activations and sums are f32,
//! what is lost is the rounding of the weights, and what is gained is memory. See `docs/models.md`
//! for what was measured.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Result, Shape, Tensor};
use serde::{Deserialize, Serialize};

use crate::flow::Mode;
use crate::kernels::bf16;

/// How many bits a weight of a product has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32, as trained.
    #[default]
    F32,
    /// 16: IEEE half precision.
    F16,
    /// 16: the upper half of 32, with their range. On a CPU activations in as many.
    Bf16,
    /// 8 bits. On a CPU with a scale per output, activations in 8 bits as well; elsewhere with a 16-bit
    /// scale per 32 of them (ggml's Q8_0).
    Int8,
}

/// The largest number of half precision, which scales of 8 bits are in as well.
const LARGEST_HALF: f32 = 65504.0;

/// Weights of a product, kept in a [`Precision`].
pub(crate) enum Weights {
    Full(Tensor),
    /// Of either 16 bits.
    Half(Tensor),
    Int8(Int8),
    /// As trained, to be rounded as the CPU's kernels pack them, and dropped.
    ToPack(Tensor, Precision),
}

/// All numbers one after the other, padded to whole blocks: a block's scale then spans neighbouring
/// output channels of one input, whatever the shape.
pub(crate) struct Int8 {
    blocks: Arc<QTensor>,
    shape: Shape,
}

// === impl Precision ===

impl Precision {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Bf16, Self::Int8];

    /// What parts a variant's name from its precision: `cnn@int8`.
    pub const MARK: char = '@';

    /// Whether weights lose bits.
    pub fn is_reduced(self) -> bool {
        self != Self::F32
    }

    /// As in a variant's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// The largest number that has a nearest one.
    fn largest(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 | Self::Int8 => LARGEST_HALF,
            Self::Bf16 => bf16::LARGEST,
        }
    }

    /// What a variant is called in this precision: `cnn`, `cnn@int8`.
    pub fn of_variant(self, variant: &str) -> String {
        match self {
            Self::F32 => variant.to_owned(),
            _ => format!("{variant}{}{self}", Self::MARK),
        }
    }

    /// The variant and the precision that a name stands for.
    ///
    /// # Errors
    /// There is no such precision; in words.
    pub fn split(name: &str) -> std::result::Result<(&str, Self), String> {
        match name.rsplit_once(Self::MARK) {
            Some((variant, precision)) => Ok((variant, precision.parse()?)),
            None => Ok((name, Self::F32)),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("no precision is called `{text}`; there are {known}")
        })
    }
}

/// Refuses numbers that are too large for a precision.
pub(crate) fn too_large(full: &Tensor, narrow: Precision) -> Result<()> {
    let largest = full.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    if largest > narrow.largest() {
        candle_core::bail!("{largest} is too large for {narrow:?}");
    }
    Ok(())
}

// === impl Weights ===

impl Weights {
    pub(crate) fn new(full: Tensor, precision: Precision, mode: Mode) -> Result<Self> {
        if precision.is_reduced() {
            too_large(&full, precision)?;
        }
        if mode == Mode::Packed {
            return Ok(Self::ToPack(full, precision));
        }
        match precision {
            Precision::F32 => Ok(Self::Full(full)),
            Precision::F16 => Ok(Self::Half(full.to_dtype(DType::F16)?)),
            Precision::Bf16 => Ok(Self::Half(full.to_dtype(DType::BF16)?)),
            Precision::Int8 => Int8::new(&full).map(Self::Int8),
        }
    }

    /// What they are kept in.
    pub(crate) fn precision(&self) -> Precision {
        match self {
            Self::Full(_) => Precision::F32,
            Self::Half(half) if half.dtype() == DType::BF16 => Precision::Bf16,
            Self::Half(_) => Precision::F16,
            Self::Int8(_) => Precision::Int8,
            Self::ToPack(_, precision) => *precision,
        }
    }

    /// As they are multiplied, or packed. Nothing is copied at full precision.
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
                    // Beside the bytes, a scale and a sum for each output.
                    Precision::Int8 => tensor.elem_count() + 2 * size_of::<f32>() * outputs,
                    // Biases, the last row, keep their other half.
                    Precision::Bf16 => (tensor.elem_count() + outputs) * size_of::<u16>(),
                    Precision::F32 | Precision::F16 => tensor.elem_count() * size_of::<f32>(),
                }
            }
        };
        bytes as u64
    }
}

impl From<Tensor> for Weights {
    fn from(full: Tensor) -> Self {
        Self::Full(full)
    }
}

// === impl Int8 ===

impl Int8 {
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

    use super::*;

    #[test]
    fn names_are_taken_apart_and_put_together() {
        for precision in Precision::ALL {
            let name = precision.of_variant("cnn");
            assert_eq!(Precision::split(&name), Ok(("cnn", precision)));
        }
        assert_eq!(
            Precision::split("cnn@int4"),
            Err("no precision is called `int4`; there are f32, f16, bf16, int8".to_owned())
        );
    }

    /// Rounding to half the last place of 11 bits, of 8, and to half a 127th of a block's largest.
    #[test]
    fn weights_are_rounded_and_no_more() {
        let full = Tensor::randn(0f32, 1.0, (37, 5), &Device::Cpu).unwrap();
        let numbers = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let largest = numbers(&full).iter().fold(0f32, |a, b| a.max(b.abs()));
        // A scale is a half-precision number itself.
        let int8 = largest / 127.0 * 0.51 + largest * 1e-3;
        let bounds = [
            (Precision::F32, 0.0, 37 * 5 * 4),
            (Precision::F16, largest / 2048.0, 37 * 5 * 2),
            (Precision::Bf16, largest / 256.0, 37 * 5 * 2),
            (Precision::Int8, int8, 192 / 32 * 34),
        ];
        for (precision, bound, bytes) in bounds {
            let weights = Weights::new(full.clone(), precision, Mode::Graph).unwrap();
            let widened = weights.widen().unwrap();
            assert_eq!(widened.shape(), full.shape());
            assert_eq!(weights.bytes(), bytes, "{precision}");
            let pairs = numbers(&full).into_iter().zip(numbers(&widened));
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(worst <= bound, "{precision}: {worst} over {bound}");
            assert_eq!(worst > 0.0, precision.is_reduced());
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let kept = [
            (Precision::F16, 65504.0),
            (Precision::Bf16, bf16::LARGEST),
            (Precision::Int8, 65504.0),
        ];
        for (precision, largest) in kept {
            for (number, is_kept) in [
                (largest, true),
                (-largest, true),
                (largest.next_up(), false),
                (f32::NEG_INFINITY, false),
            ] {
                let full = Tensor::new(&[0.5, number], &Device::Cpu).unwrap();
                for mode in [Mode::Graph, Mode::Packed] {
                    let weights = Weights::new(full.clone(), precision, mode);
                    assert_eq!(weights.is_ok(), is_kept, "{precision} {number}");
                    assert!(weights.is_err() || weights.unwrap().precision() == precision);
                }
            }
        }
    }
}
