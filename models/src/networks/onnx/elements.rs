//! Elements of raw tensors as numbers of a type.

use std::borrow::Cow;

use bytemuck::Pod;
use bytes::Bytes;
use candle_core::Result;

use crate::networks::datatype::Datatype;
use crate::networks::graph::{RawData, RawTensor};
use crate::networks::onnx::proto::TensorProto;

/// The numbers of little-endian bytes; a copy only if the bytes are not aligned.
pub(super) fn numbers<T: Pod>(tensor: &RawTensor) -> Result<Cow<'_, [T]>> {
    let Some(bytes) = tensor.numbers() else {
        candle_core::bail!("strings where {} was expected", tensor.datatype.name());
    };
    let count: usize = tensor.shape.iter().product();
    if bytes.len() != count * size_of::<T>() {
        let (found, shape) = (bytes.len(), &tensor.shape);
        candle_core::bail!(
            "{found} bytes for {shape:?} of {} bytes each",
            size_of::<T>()
        );
    }
    Ok(match bytemuck::try_cast_slice(bytes) {
        Ok(numbers) => Cow::Borrowed(numbers),
        Err(_) => Cow::Owned(bytemuck::allocation::pod_collect_to_vec(bytes)),
    })
}

/// The numbers of a constant: little-endian bytes, or those of the typed field.
pub(super) fn constants<T: Pod>(raw: &Bytes, typed: &[T]) -> Result<Vec<T>> {
    if raw.is_empty() {
        return Ok(typed.to_vec());
    }
    if !raw.len().is_multiple_of(size_of::<T>()) {
        let size = size_of::<T>();
        candle_core::bail!("{} bytes of constants of {size} bytes each", raw.len());
    }
    Ok(bytemuck::allocation::pod_collect_to_vec(raw))
}

/// The real numbers of a weight.
///
/// # Errors
/// They are not those of its shape.
pub(super) fn weights(weight: &TensorProto) -> Result<Vec<f32>> {
    let numbers: Vec<f32> = constants(&weight.raw_data, &weight.float_data)?;
    let sizes = weight.dims.iter().map(|&size| usize::try_from(size).ok());
    let mut sizes = sizes.map(|size| size.unwrap_or(usize::MAX));
    let count = sizes.try_fold(1usize, usize::checked_mul);
    if count != Some(numbers.len()) {
        let (name, dims, found) = (&weight.name, &weight.dims, numbers.len());
        candle_core::bail!("constant `{name}` of shape {dims:?} has {found} values");
    }
    Ok(numbers)
}

/// A tensor of numbers, which are copied.
pub(super) fn tensor<T: Pod>(datatype: Datatype, shape: Vec<usize>, numbers: &[T]) -> RawTensor {
    RawTensor {
        datatype,
        shape,
        data: RawData::Numbers(Bytes::copy_from_slice(bytemuck::cast_slice(numbers))),
    }
}

/// A tensor of numbers, which are moved.
pub(super) fn moved<T: Pod + Send>(
    datatype: Datatype,
    shape: Vec<usize>,
    numbers: Vec<T>,
) -> RawTensor {
    RawTensor {
        datatype,
        shape,
        data: RawData::Numbers(Bytes::from_owner(AsBytes(numbers))),
    }
}

/// Numbers as their bytes; every supported machine is little-endian.
struct AsBytes<T>(Vec<T>);

impl<T: Pod> AsRef<[u8]> for AsBytes<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Floats of any width as f32.
pub(super) fn floats(tensor: &RawTensor) -> Result<Vec<f32>> {
    match tensor.datatype {
        Datatype::Fp32 => numbers::<f32>(tensor).map(Cow::into_owned),
        Datatype::Fp64 => {
            let wide = numbers::<f64>(tensor)?;
            Ok(wide.iter().map(|&number| number as f32).collect())
        }
        Datatype::Fp16 => {
            let half = numbers::<half::f16>(tensor)?;
            Ok(half.iter().map(|number| number.to_f32()).collect())
        }
        other => candle_core::bail!("{} where floats were expected", other.name()),
    }
}
