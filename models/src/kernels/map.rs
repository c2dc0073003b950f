//! Activations in reused memory.

use candle_core::{Device, Result, Shape, Storage, Tensor};

use super::scratch::Buffer;
use crate::unfold2d::contiguous;

/// `[pictures, height, width, channels]`, contiguous. A sequence has a height of 1; a row of
/// features is a picture of one position.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) numbers: Buffer,
    dims: [usize; 4],
}

// === impl Map ===

impl Map {
    /// Numbers of any value.
    pub(crate) fn new(dims: [usize; 4]) -> Self {
        let numbers = Buffer::take(dims.iter().product());
        Self { numbers, dims }
    }

    /// The numbers of a tensor on the CPU.
    ///
    /// # Errors
    /// It is elsewhere, of another type, or has another number of numbers.
    pub(crate) fn of(x: &Tensor, dims: [usize; 4]) -> Result<Self> {
        if x.elem_count() != dims.iter().product::<usize>() {
            candle_core::bail!("{:?} cannot be seen as {dims:?}", x.shape());
        }
        let mut map = Self::new(dims);
        with_numbers(x, |numbers| map.numbers.copy_from_slice(numbers))?;
        Ok(map)
    }

    /// `[pictures, channels, height, width]`, as clients send it, to channels last.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn of_planes(x: &Tensor, dims: [usize; 4]) -> Result<Self> {
        let [_, height, width, channels] = dims;
        if x.elem_count() != dims.iter().product::<usize>() {
            candle_core::bail!("{:?} cannot be seen as {dims:?}", x.shape());
        }
        let mut map = Self::new(dims);
        let plane = (height * width).max(1);
        with_numbers(x, |numbers| {
            let pictures = numbers.chunks_exact(plane * channels);
            let to = map.numbers.chunks_exact_mut(plane * channels);
            for (from, to) in pictures.zip(to) {
                for (channel, from) in from.chunks_exact(plane).enumerate() {
                    let to = to.iter_mut().skip(channel).step_by(channels);
                    for (to, from) in to.zip(from) {
                        *to = *from;
                    }
                }
            }
        })?;
        Ok(map)
    }

    /// `[pictures, height, width, channels]`.
    pub(crate) fn dims(&self) -> [usize; 4] {
        self.dims
    }

    /// Numbers of one picture.
    pub(crate) fn picture_len(&self) -> usize {
        self.dims[1..].iter().product()
    }

    /// The same numbers seen as another shape.
    ///
    /// # Errors
    /// It has another number of numbers.
    pub(crate) fn reshape(self, dims: [usize; 4]) -> Result<Self> {
        if self.numbers.len() != dims.iter().product::<usize>() {
            candle_core::bail!("{:?} cannot be seen as {dims:?}", self.dims);
        }
        Ok(Self { dims, ..self })
    }

    /// A tensor of its own memory.
    ///
    /// # Errors
    /// `shape` has another number of numbers.
    pub(crate) fn to_tensor(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::from_slice(&self.numbers, shape.into(), &Device::Cpu)
    }
}

impl Clone for Map {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.dims);
        copy.numbers.copy_from_slice(&self.numbers);
        copy
    }
}

/// Lends the numbers of an f32 tensor on the CPU, copied only where it is a strided view.
///
/// # Errors
/// It is elsewhere or of another type.
pub(crate) fn with_numbers<T>(tensor: &Tensor, take: impl FnOnce(&[f32]) -> T) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Ok(take(contiguous(storage, layout)?)),
        _ => candle_core::bail!("a tensor of the CPU is needed"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn planes_become_channels() {
        let x: Vec<f32> = (0..2 * 3 * 2 * 2).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (2, 12), &Device::Cpu).unwrap();
        let map = Map::of_planes(&x, [2, 2, 2, 3]).unwrap();
        let theirs = x.reshape((2, 3, 2, 2)).unwrap();
        let theirs = theirs.permute((0, 2, 3, 1)).unwrap().contiguous().unwrap();
        let theirs: Vec<f32> = theirs.flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(*map.numbers, theirs);
        assert!(Map::of_planes(&x, [2, 2, 2, 4]).is_err());
    }

    #[test]
    fn views_are_read_where_they_lie() {
        let x: Vec<f32> = (0..12).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (3, 4), &Device::Cpu).unwrap();
        let rows = Map::of(&x.narrow(0, 1, 2).unwrap(), [2, 1, 1, 4]).unwrap();
        assert_eq!(rows.numbers[0], 4.0);
        let columns = Map::of(&x.narrow(1, 1, 2).unwrap(), [3, 1, 1, 2]).unwrap();
        assert_eq!(*columns.numbers, [1., 2., 5., 6., 9., 10.]);
        let tensor = columns.reshape([1, 1, 3, 2]).unwrap().to_tensor((1, 3, 2));
        assert_eq!(tensor.unwrap().dims(), [1, 3, 2]);
    }
}
