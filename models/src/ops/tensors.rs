//! Values of tensors for the kernels, and back.

use candle_core::{CpuStorage, Device, Layout, Result, Shape, Storage, Tensor};
use switchyard_kernels::{FeatureMap, KernelError};

/// The values of a contiguous f32 tensor.
pub(crate) fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let values = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&values[from..to]),
        None => candle_core::bail!("the operation needs contiguous input"),
    }
}

/// Lends the values of an f32 tensor on the CPU; a strided view is copied first.
///
/// # Errors
/// The tensor is on another device or of another type.
pub(crate) fn with_values<T>(tensor: &Tensor, take: impl FnOnce(&[f32]) -> T) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Ok(take(contiguous(storage, layout)?)),
        _ => candle_core::bail!("a tensor of the CPU is needed"),
    }
}

/// The values of a tensor on the CPU, seen as `dims`.
///
/// # Errors
/// The tensor is on another device, of another type, or has another number of values.
pub(crate) fn to_map(x: &Tensor, dims: [usize; 4]) -> Result<FeatureMap> {
    if x.elem_count() != dims.iter().product::<usize>() {
        candle_core::bail!("{:?} cannot be seen as {dims:?}", x.shape());
    }
    let mut map = FeatureMap::new(dims);
    with_values(x, |values| map.values.copy_from_slice(values))?;
    Ok(map)
}

/// A tensor with its own memory.
///
/// # Errors
/// `shape` has another number of values.
pub(crate) fn to_tensor(map: &FeatureMap, shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::from_slice(&map.values, shape.into(), &Device::Cpu)
}

/// The error of a kernel as an error of a tensor operation.
pub(crate) fn kernel_error(error: KernelError) -> candle_core::Error {
    candle_core::Error::msg(error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn views_are_read_where_they_lie() {
        let x: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (3, 4), &Device::Cpu).unwrap();
        let rows = to_map(&x.narrow(0, 1, 2).unwrap(), [2, 1, 1, 4]).unwrap();
        assert_eq!(rows.values[0], 4.0);
        let columns = to_map(&x.narrow(1, 1, 2).unwrap(), [3, 1, 1, 2]).unwrap();
        assert_eq!(*columns.values, [1., 2., 5., 6., 9., 10.]);
        let tensor = to_tensor(&columns.reshape([1, 1, 3, 2]).unwrap(), (1, 3, 2)).unwrap();
        assert_eq!(
            tensor.get(0).unwrap().to_vec2::<f32>().unwrap()[2],
            [9., 10.]
        );
        assert!(to_map(&x, [1, 1, 1, 5]).is_err());
    }
}
