//! Constants of a file.

use std::sync::Arc;

use bytes::Bytes;
use candle_core::Result;

use super::shape;
use super::value::Value;
use crate::networks::onnx::elements;
use crate::networks::onnx::proto::TensorProto;

/// The value of a `TensorProto`.
///
/// # Errors
/// It has a type that the engine does not compute, or not the elements of its shape.
pub(super) fn constant(proto: &TensorProto) -> Result<Value> {
    if proto.data_location != 0 {
        candle_core::bail!("constant `{}` is in another file", proto.name);
    }
    let shape = shape::sizes(&proto.dims)?;
    let raw = &proto.raw_data;
    match proto.data_type {
        1 => Value::new(shape, elements::constants(raw, &proto.float_data)?),
        6 => Value::new(shape, elements::constants(raw, &proto.int32_data)?),
        7 => Value::new(shape, elements::constants(raw, &proto.int64_data)?),
        11 => Value::new(shape, elements::constants(raw, &proto.double_data)?),
        8 => Value::new(shape, texts(&proto.string_data)?),
        9 if raw.is_empty() => {
            let flags = proto.int32_data.iter();
            Value::new(shape, flags.map(|&flag| flag != 0).collect::<Vec<bool>>())
        }
        9 => Value::new(shape, raw.iter().map(|&flag| flag != 0).collect()),
        other => candle_core::bail!("constant `{}` has element type {other}", proto.name),
    }
}

/// Texts of a file, which must be UTF-8.
pub(super) fn texts(bytes: &[Bytes]) -> Result<Vec<Arc<str>>> {
    bytes.iter().map(|one| Ok(text(one)?.into())).collect()
}

pub(super) fn text(bytes: &Bytes) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(candle_core::Error::wrap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(data_type: i32, dims: &[i64], raw: &'static [u8]) -> TensorProto {
        TensorProto {
            data_type,
            dims: dims.to_vec(),
            raw_data: Bytes::from_static(raw),
            ..TensorProto::default()
        }
    }

    #[test]
    fn raw_and_typed_data_are_read() {
        let value = constant(&raw(6, &[2], &[1, 0, 0, 0, 255, 255, 255, 255])).unwrap();
        assert_eq!(value, Value::new(vec![2], vec![1i32, -1]).unwrap());
        let typed = TensorProto {
            data_type: 9,
            dims: vec![2],
            int32_data: vec![0, 1],
            ..TensorProto::default()
        };
        let flags = Value::new(vec![2], vec![false, true]).unwrap();
        assert_eq!(constant(&typed).unwrap(), flags);
    }

    #[test]
    fn odd_constants_are_errors() {
        assert!(constant(&raw(1, &[1], &[0, 0, 0])).is_err());
        assert!(constant(&raw(1, &[2], &[0, 0, 0, 0])).is_err());
        assert!(constant(&raw(1, &[-1], &[0, 0, 0, 0])).is_err());
        assert!(constant(&raw(2, &[4], &[0, 0, 0, 0])).is_err());
        assert!(constant(&raw(1, &[i64::MAX, i64::MAX], &[])).is_err());
    }
}
