//! Values from and to the tensors of requests.

use candle_core::Result;

use super::value::{Tensor, Value};
use crate::networks::datatype::Datatype;
use crate::networks::graph::{RawData, RawTensor};
use crate::networks::onnx::elements;

/// Whether the engine takes and gives this type.
pub(super) const fn is_known(datatype: Datatype) -> bool {
    matches!(
        datatype,
        Datatype::Fp32
            | Datatype::Fp64
            | Datatype::Int64
            | Datatype::Int32
            | Datatype::Bool
            | Datatype::Bytes
    )
}

/// The value of a request's tensor; numbers are copied.
pub(super) fn value(tensor: &RawTensor) -> Result<Value> {
    let shape = tensor.shape.clone();
    super::shape::count(&shape)?;
    match tensor.datatype {
        Datatype::Fp32 => Value::new(shape, elements::numbers::<f32>(tensor)?.into_owned()),
        Datatype::Fp64 => Value::new(shape, elements::numbers::<f64>(tensor)?.into_owned()),
        Datatype::Int64 => Value::new(shape, elements::numbers::<i64>(tensor)?.into_owned()),
        Datatype::Int32 => Value::new(shape, elements::numbers::<i32>(tensor)?.into_owned()),
        Datatype::Bool => {
            let flags = elements::numbers::<u8>(tensor)?;
            Value::new(shape, flags.iter().map(|&flag| flag != 0).collect())
        }
        Datatype::Bytes => Value::new(shape, tensor.texts().unwrap_or_default().to_vec()),
        other => candle_core::bail!("{} is not computed for classic models", other.name()),
    }
}

/// The tensor of an answer.
pub(super) fn raw(value: Value) -> RawTensor {
    fn numbers<T: bytemuck::Pod + Send>(datatype: Datatype, tensor: Tensor<T>) -> RawTensor {
        let (shape, data) = tensor.into_parts();
        elements::moved(datatype, shape, data)
    }
    match value {
        Value::F32(tensor) => numbers(Datatype::Fp32, tensor),
        Value::F64(tensor) => numbers(Datatype::Fp64, tensor),
        Value::I64(tensor) => numbers(Datatype::Int64, tensor),
        Value::I32(tensor) => numbers(Datatype::Int32, tensor),
        Value::Bool(tensor) => numbers(Datatype::Bool, tensor.map(|&flag| u8::from(flag))),
        Value::Text(tensor) => {
            let (shape, texts) = tensor.into_parts();
            RawTensor {
                datatype: Datatype::Bytes,
                shape,
                data: RawData::Texts(texts),
            }
        }
    }
}
