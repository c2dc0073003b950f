//! Binary floats are numbers, as those of JSON are.

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
        TensorData::F16(values) => position(values, half),
        TensorData::Bf16(values) => position(values, brain),
        TensorData::F32(values) => position(values, |value| value.is_finite()),
        TensorData::F64(values) => position(values, |value| value.is_finite()),
        TensorData::Wire(wire) => match wire.datatype {
            Datatype::F16 => in_bytes(&wire.bytes, |bytes| half(&u16::from_le_bytes(*bytes))),
            Datatype::Bf16 => in_bytes(&wire.bytes, |bytes| brain(&u16::from_le_bytes(*bytes))),
            Datatype::F32 => in_bytes(&wire.bytes, |bytes| f32::from_le_bytes(*bytes).is_finite()),
            Datatype::F64 => in_bytes(&wire.bytes, |bytes| f64::from_le_bytes(*bytes).is_finite()),
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

/// The exponents of NaN and infinity have all bits set.
fn half(bits: &u16) -> bool {
    bits & 0x7c00 != 0x7c00
}

fn brain(bits: &u16) -> bool {
    bits & 0x7f80 != 0x7f80
}

fn in_bytes<const N: usize>(bytes: &[u8], is_finite: impl Fn(&[u8; N]) -> bool) -> Option<usize> {
    position(bytes.as_chunks::<N>().0, is_finite)
}

/// The first element that is not finite. The pass over all of them has no branch, so that the
/// compiler makes it a vector loop.
fn position<T>(values: &[T], is_finite: impl Fn(&T) -> bool) -> Option<usize> {
    let all = values
        .iter()
        .fold(true, |all, value| all & is_finite(value));
    if all {
        return None;
    }
    values.iter().position(|value| !is_finite(value))
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
