//! Tensors in the types of rten's.

use std::borrow::Cow;

use candle_core::{Error, Result};
use rten::{Value, ValueView};
use rten_tensor::{AsView, Layout, Tensor, TensorView};

use crate::networks::datatype::Datatype;
use crate::networks::graph::{Port, RawTensor};
use crate::networks::onnx::elements;

/// The engine's name.
pub(in crate::networks::onnx) const NAME: &str = "rten";

/// The way out for graphs that it refuses.
pub(in crate::networks::onnx) const WAY_OUT: &str = "install onnxruntime, and name it with `onnxruntime` in [server] or \
                       ORT_DYLIB_PATH";

/// The elements of a tensor, in a type of rten's.
pub(in crate::networks::onnx) enum Numbers<'a> {
    F32(Cow<'a, [f32]>),
    I32(Cow<'a, [i32]>),
    I8(Cow<'a, [i8]>),
    U8(Cow<'a, [u8]>),
}

// === impl Numbers ===

impl<'a> Numbers<'a> {
    pub(in crate::networks::onnx) fn of(tensor: &'a RawTensor) -> Result<Self> {
        Ok(match tensor.datatype {
            Datatype::Fp32 => Self::F32(elements::numbers(tensor)?),
            Datatype::Int32 => Self::I32(elements::numbers(tensor)?),
            Datatype::Int8 => Self::I8(elements::numbers(tensor)?),
            Datatype::Uint8 => Self::U8(elements::numbers(tensor)?),
            Datatype::Bool => {
                let bytes = elements::numbers::<u8>(tensor)?;
                Self::I32(bytes.iter().map(|&byte| i32::from(byte != 0)).collect())
            }
            Datatype::Int64 => {
                let wide = elements::numbers::<i64>(tensor)?;
                let narrow: std::result::Result<Vec<i32>, _> =
                    wide.iter().map(|&number| i32::try_from(number)).collect();
                Self::I32(narrow.map_err(|_| too_large(&wide))?.into())
            }
            other => candle_core::bail!("{} is not computed by {NAME}", other.name()),
        })
    }

    pub(in crate::networks::onnx) fn view(&self, shape: &[usize]) -> Result<ValueView<'_>> {
        Ok(match self {
            Self::F32(numbers) => view(shape, numbers)?.into(),
            Self::I32(numbers) => view(shape, numbers)?.into(),
            Self::I8(numbers) => view(shape, numbers)?.into(),
            Self::U8(numbers) => view(shape, numbers)?.into(),
        })
    }
}

fn view<'a, T>(shape: &[usize], numbers: &'a [T]) -> Result<TensorView<'a, T>> {
    TensorView::try_from_data(shape, numbers).map_err(Error::wrap)
}

fn too_large(numbers: &[i64]) -> Error {
    let odd = numbers
        .iter()
        .find(|&&number| i32::try_from(number).is_err());
    let odd = odd.copied().unwrap_or_default();
    Error::msg(format!(
        "{odd} does not fit the 32 bits that the engine in this program computes in; {WAY_OUT}"
    ))
}

/// An output in the type that the graph declares.
pub(in crate::networks::onnx) fn raw(port: &Port, value: Value) -> Result<RawTensor> {
    let datatype = port.datatype;
    match (value, datatype) {
        (Value::FloatTensor(tensor), Datatype::Fp32) => Ok(moved(datatype, tensor)),
        (Value::Int32Tensor(tensor), Datatype::Int32) => Ok(moved(datatype, tensor)),
        (Value::Int8Tensor(tensor), Datatype::Int8) => Ok(moved(datatype, tensor)),
        (Value::UInt8Tensor(tensor), Datatype::Uint8) => Ok(moved(datatype, tensor)),
        (Value::Int32Tensor(tensor), Datatype::Int64) => {
            let wide: Vec<i64> = tensor.iter().map(|&number| i64::from(number)).collect();
            Ok(elements::moved(datatype, tensor.shape().to_vec(), wide))
        }
        (Value::Int32Tensor(tensor), Datatype::Bool) => {
            let bytes: Vec<u8> = tensor.iter().map(|&flag| u8::from(flag != 0)).collect();
            Ok(elements::moved(datatype, tensor.shape().to_vec(), bytes))
        }
        (other, wanted) => candle_core::bail!(
            "output `{}` is {}, the graph says {}",
            port.name,
            other.dtype(),
            wanted.name()
        ),
    }
}

fn moved<T: bytemuck::Pod + Send>(datatype: Datatype, tensor: Tensor<T>) -> RawTensor {
    let shape = tensor.shape().to_vec();
    elements::moved(datatype, shape, tensor.into_data())
}
