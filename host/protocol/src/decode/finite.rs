//! Binary floats are numbers, as those of JSON are.

use bytemuck::NoUninit;

use crate::app::AppInfo;
use crate::datatype::Datatype;
use crate::tensor::TensorData;

/// Checks that a float tensor has neither NaN nor infinity, which models turn into labels with a
/// confidence, unless its app reads them as missing values.
///
/// # Errors
/// The first such element; the text has no field name.
pub(crate) fn check(app: &AppInfo, data: &TensorData) -> Result<(), String> {
    match app.non_finite {
        true => Ok(()),
        false => all_finite(data),
    }
}

fn all_finite(data: &TensorData) -> Result<(), String> {
    let found = match data {
        TensorData::F16(values) => HALF.in_numbers(values),
        TensorData::Bf16(values) => BRAIN.in_numbers(values),
        TensorData::F32(values) => SINGLE.in_numbers(values),
        TensorData::F64(values) => DOUBLE.in_numbers(values),
        TensorData::Wire(wire) => match wire.datatype {
            Datatype::F16 => HALF.in_bytes(&wire.bytes, u64::from_le_bytes),
            Datatype::Bf16 => BRAIN.in_bytes(&wire.bytes, u64::from_le_bytes),
            Datatype::F32 => SINGLE.in_bytes(&wire.bytes, u64::from_le_bytes),
            Datatype::F64 => DOUBLE.in_bytes(&wire.bytes, u64::from_le_bytes),
            _ => None,
        },
        _ => None,
    };
    match found {
        Some(index) => Err(format!(
            "element {index}: expected a finite {} number, got NaN or infinity",
            data.datatype().name()
        )),
        None => Ok(()),
    }
}

const HALF: FloatFormat = FloatFormat::new(16, 10);
const BRAIN: FloatFormat = FloatFormat::new(16, 7);
const SINGLE: FloatFormat = FloatFormat::new(32, 23);
const DOUBLE: FloatFormat = FloatFormat::new(64, 52);

/// The bits of as many floats as fit in 64 bits.
#[derive(Clone, Copy)]
struct FloatFormat {
    /// Bytes of a float.
    size: usize,
    /// The exponents. Those of NaN and infinity have all bits set.
    exponents: u64,
    /// The lowest bit of each exponent.
    lowest: u64,
    signs: u64,
}

impl FloatFormat {
    const fn new(bits: u32, fraction_bits: u32) -> Self {
        let ones = u64::MAX / (u64::MAX >> (64 - bits));
        let (signs, lowest) = (ones << (bits - 1), ones << fraction_bits);
        Self {
            size: bits as usize / 8,
            exponents: signs - lowest,
            lowest,
            signs,
        }
    }

    fn in_numbers<T: NoUninit>(self, values: &[T]) -> Option<usize> {
        self.in_bytes(bytemuck::cast_slice(values), u64::from_ne_bytes)
    }

    /// The first element that is not finite. The pass over all of them has no branch.
    fn in_bytes(self, bytes: &[u8], word: impl Fn([u8; 8]) -> u64) -> Option<usize> {
        let (blocks, rest) = bytes.as_chunks::<32>();
        let mut found = 0;
        for block in blocks {
            found |= self.non_finite(block, &word);
        }
        // Zeros are finite.
        let mut last = [0; 32];
        last[..rest.len()].copy_from_slice(rest);
        if (found | self.non_finite(&last, &word)) & self.signs == 0 {
            return None;
        }
        bytes.chunks_exact(self.size).position(|float| {
            let mut one = [0; 32];
            one[..self.size].copy_from_slice(float);
            self.non_finite(&one, &word) & self.signs != 0
        })
    }

    /// The sign bits of 32 bytes are those of floats that are not finite: one more than an exponent
    /// of ones carries into them.
    #[inline]
    fn non_finite(self, block: &[u8; 32], word: impl Fn([u8; 8]) -> u64) -> u64 {
        let mut found = 0;
        for bytes in block.as_chunks::<8>().0 {
            found |= (word(*bytes) & self.exponents) + self.lowest;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::tensor::WireElements;

    #[test]
    fn nan_and_infinity_are_found_in_every_float_type() {
        let inf = f32::INFINITY;
        for (data, found) in [
            (
                TensorData::F32(vec![1.0, f32::MAX, f32::MIN_POSITIVE]),
                None,
            ),
            (TensorData::F32(vec![1.0, f32::NAN, inf]), Some(1)),
            (TensorData::F64(vec![1.0, 2.0, f64::NEG_INFINITY]), Some(2)),
            (TensorData::F16(vec![0x7bff, 0xfc00]), Some(1)),
            (TensorData::Bf16(vec![0x7fc0]), Some(0)),
            (TensorData::Bf16(vec![0x7f7f, 0x7c00]), None),
            (TensorData::I64(vec![i64::MAX]), None),
        ] {
            let error = all_finite(&data).err();
            let expected = found.map(|index| format!("element {index}: expected a finite"));
            match (&error, &expected) {
                (Some(error), Some(expected)) => assert!(error.starts_with(expected), "{error}"),
                other => assert_eq!(other, (&None, &None), "{data:?}"),
            }
        }
    }

    #[test]
    fn a_tensor_in_its_body_is_read_too() {
        let numbers = [0.5_f32, 1.5, f32::NAN];
        let bytes: Bytes = numbers
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let wire = |datatype, bytes| TensorData::Wire(WireElements { datatype, bytes });
        let error = all_finite(&wire(Datatype::F32, bytes.clone())).unwrap_err();
        assert_eq!(
            error,
            "element 2: expected a finite FP32 number, got NaN or infinity"
        );
        assert_eq!(all_finite(&wire(Datatype::F32, bytes.slice(..8))), Ok(()));
        assert_eq!(all_finite(&wire(Datatype::I32, bytes)), Ok(()));
    }
}
