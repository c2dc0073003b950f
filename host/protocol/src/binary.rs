//! Binary tensors: little-endian, row-major, copied at most once in each direction.

use bytemuck::Pod;
use bytes::Bytes;

use crate::datatype::Datatype;
use crate::tensor::{TensorData, WireElements};

/// Smallest tensor that stays in its body, in bytes. A tensor in the body keeps the connection's
/// read buffer, and the connection allocates a new one; below this size a copy is cheaper.
const KEPT_BYTES_MIN: usize = 16 << 10;

/// Reads `count` elements of `blob`, a part of `body`; a large blob is not copied.
///
/// # Errors
/// The length or an element of `blob` is wrong; the text has no field name.
pub(crate) fn take(
    datatype: Datatype,
    body: &Bytes,
    blob: &[u8],
    count: usize,
) -> Result<TensorData, String> {
    let whole = datatype.size().and_then(|size| count.checked_mul(size)) == Some(blob.len());
    // A BOOL has only two valid bytes, so each one is checked.
    if !whole || blob.len() < KEPT_BYTES_MIN || datatype == Datatype::Bool {
        return decode(datatype, blob, count);
    }
    let bytes = body.slice_ref(blob);
    Ok(TensorData::Wire(WireElements { datatype, bytes }))
}

/// Reads `count` elements into a vector of their type.
///
/// # Errors
/// As [`take`].
pub(crate) fn decode(datatype: Datatype, blob: &[u8], count: usize) -> Result<TensorData, String> {
    if let Some(size) = datatype.size() {
        let expected = count.checked_mul(size);
        if expected != Some(blob.len()) {
            let expected =
                expected.map_or_else(|| "more than usize::MAX".to_owned(), |n| n.to_string());
            return Err(format!(
                "expected {expected} bytes for {count} elements of {}, got {}",
                datatype.name(),
                blob.len()
            ));
        }
    }
    Ok(match datatype {
        Datatype::Bool => TensorData::Bool(bools(blob)?),
        Datatype::U8 => TensorData::U8(blob.to_vec()),
        Datatype::U16 => TensorData::U16(numbers(blob, u16::from_le_bytes)),
        Datatype::U32 => TensorData::U32(numbers(blob, u32::from_le_bytes)),
        Datatype::U64 => TensorData::U64(numbers(blob, u64::from_le_bytes)),
        Datatype::I8 => TensorData::I8(numbers(blob, i8::from_le_bytes)),
        Datatype::I16 => TensorData::I16(numbers(blob, i16::from_le_bytes)),
        Datatype::I32 => TensorData::I32(numbers(blob, i32::from_le_bytes)),
        Datatype::I64 => TensorData::I64(numbers(blob, i64::from_le_bytes)),
        Datatype::F16 => TensorData::F16(numbers(blob, u16::from_le_bytes)),
        Datatype::Bf16 => TensorData::Bf16(numbers(blob, u16::from_le_bytes)),
        Datatype::F32 => TensorData::F32(numbers(blob, f32::from_le_bytes)),
        Datatype::F64 => TensorData::F64(numbers(blob, f64::from_le_bytes)),
        Datatype::Bytes => TensorData::Bytes(byte_strings(blob, count)?),
    })
}

/// On little-endian machines the bytes are the numbers, and are copied at once.
fn numbers<const N: usize, T: Pod>(blob: &[u8], from_le_bytes: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (elements, _) = blob.as_chunks::<N>();
    if cfg!(target_endian = "little") {
        return bytemuck::pod_collect_to_vec(elements.as_flattened());
    }
    elements
        .iter()
        .map(|element| from_le_bytes(*element))
        .collect()
}

fn bools(blob: &[u8]) -> Result<Vec<bool>, String> {
    blob.iter()
        .enumerate()
        .map(|(index, byte)| match byte {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!(
                "element {index}: expected a BOOL of 0 or 1, got {other}"
            )),
        })
        .collect()
}

/// `BYTES` elements: each a u32 length and its bytes.
fn byte_strings(mut blob: &[u8], count: usize) -> Result<Vec<Vec<u8>>, String> {
    // Each element takes at least its length, so the size of the blob bounds the reservation.
    let mut elements = Vec::with_capacity(count.min(blob.len() / 4));
    while let Some((length, rest)) = blob.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let index = elements.len();
        let Some((element, rest)) = rest.split_at_checked(length) else {
            return Err(format!(
                "element {index}: its length is {length} bytes, {} are left",
                rest.len()
            ));
        };
        if index < count {
            elements.push(element.to_vec());
        } else {
            return Err(format!("expected {count} elements of BYTES, got more"));
        }
        blob = rest;
    }
    if !blob.is_empty() {
        return Err(format!(
            "element {}: {} bytes left, too few for a u32 length",
            elements.len(),
            blob.len()
        ));
    }
    if elements.len() != count {
        return Err(format!(
            "expected {count} elements of BYTES, got {}",
            elements.len()
        ));
    }
    Ok(elements)
}

/// Bytes that [`encode`] appends.
pub(crate) fn encoded_len(data: &TensorData) -> usize {
    match data {
        TensorData::Bytes(elements) => elements.iter().map(|element| 4 + element.len()).sum(),
        _ => data.len() * data.datatype().size().unwrap_or_default(),
    }
}

/// Appends the elements in wire order.
pub(crate) fn encode(data: &TensorData, out: &mut Vec<u8>) {
    match data {
        TensorData::Bool(values) => out.extend(values.iter().map(|&value| u8::from(value))),
        TensorData::U8(values) => out.extend_from_slice(values),
        TensorData::U16(values) | TensorData::F16(values) | TensorData::Bf16(values) => {
            append(values, u16::to_le_bytes, out);
        }
        TensorData::U32(values) => append(values, u32::to_le_bytes, out),
        TensorData::U64(values) => append(values, u64::to_le_bytes, out),
        TensorData::I8(values) => append(values, i8::to_le_bytes, out),
        TensorData::I16(values) => append(values, i16::to_le_bytes, out),
        TensorData::I32(values) => append(values, i32::to_le_bytes, out),
        TensorData::I64(values) => append(values, i64::to_le_bytes, out),
        TensorData::F32(values) => append(values, f32::to_le_bytes, out),
        TensorData::F64(values) => append(values, f64::to_le_bytes, out),
        TensorData::Bytes(elements) => {
            for element in elements {
                let length = u32::try_from(element.len()).unwrap_or(u32::MAX);
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(&element[..length as usize]);
            }
        }
        TensorData::Wire(wire) => out.extend_from_slice(&wire.bytes),
    }
}

fn append<const N: usize, T: Pod>(
    values: &[T],
    to_le_bytes: impl Fn(T) -> [u8; N],
    out: &mut Vec<u8>,
) {
    if cfg!(target_endian = "little") {
        out.extend_from_slice(bytemuck::cast_slice(values));
        return;
    }
    out.reserve(values.len() * N);
    for &value in values {
        out.extend_from_slice(&to_le_bytes(value));
    }
}

// === impl WireElements ===

impl WireElements {
    /// A copy of the elements as a vector of their type.
    ///
    /// # Errors
    /// The bytes are not a whole number of elements.
    pub fn decode(&self) -> Result<TensorData, String> {
        decode(self.datatype, &self.bytes, self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_blob_names_the_expected_length() {
        assert_eq!(
            decode(Datatype::F32, &[0; 10], 3).unwrap_err(),
            "expected 12 bytes for 3 elements of FP32, got 10"
        );
        assert!(decode(Datatype::F64, &[0; 8], usize::MAX).is_err());
    }

    #[test]
    fn a_large_tensor_stays_in_its_body() {
        let body = Bytes::from(vec![1; KEPT_BYTES_MIN + 3]);
        let (size, count) = (KEPT_BYTES_MIN, KEPT_BYTES_MIN / 4);
        let kept = take(Datatype::F32, &body, &body[3..], count);
        let Ok(TensorData::Wire(wire)) = &kept else {
            panic!("copied: {kept:?}");
        };
        assert_eq!(wire.bytes.as_ptr(), body[3..].as_ptr());
        assert_eq!((wire.len(), wire.datatype), (count, Datatype::F32));
        let smaller = take(Datatype::F32, &body, &body[7..], count - 1);
        assert!(matches!(smaller, Ok(TensorData::F32(values)) if values.len() == count - 1));
        let bools = take(Datatype::Bool, &body, &body[3..], size);
        assert!(matches!(bools, Ok(TensorData::Bool(_))));
        assert!(take(Datatype::F32, &body, &body[3..], count + 1).is_err());
    }

    #[test]
    fn a_bool_is_zero_or_one() {
        assert_eq!(
            decode(Datatype::Bool, &[1, 0], 2),
            Ok(TensorData::Bool(vec![true, false]))
        );
        assert!(
            decode(Datatype::Bool, &[2], 1)
                .unwrap_err()
                .contains("element 0")
        );
    }

    #[test]
    fn byte_strings_must_fill_the_blob() {
        let two = [1, 0, 0, 0, b'a', 0, 0, 0, 0];
        assert_eq!(
            decode(Datatype::Bytes, &two, 2),
            Ok(TensorData::Bytes(vec![b"a".to_vec(), Vec::new()]))
        );
        for (blob, count, message) in [
            (&two[..], 3, "got 2"),
            (&two, 1, "got more"),
            (&two[..7], 2, "too few for a u32 length"),
            (&[9, 0, 0, 0, 1], 1, "its length is 9 bytes, 1 are left"),
        ] {
            let error = decode(Datatype::Bytes, blob, count).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
