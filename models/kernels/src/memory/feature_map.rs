//! Activations in reused memory.

use super::scratch::Buffer;
use crate::error::KernelError;

/// `[images, height, width, channels]`, contiguous. A sequence has a height of 1; a feature vector
/// is an image of one position.
#[derive(Debug)]
pub struct FeatureMap {
    /// The values.
    pub values: Buffer,
    dims: [usize; 4],
}

/// The values of a feature map, wherever they are.
#[derive(Clone, Copy)]
pub(crate) struct FeatureView<'a> {
    pub(crate) values: &'a [f32],
    /// `[images, height, width, channels]`.
    pub(crate) dims: [usize; 4],
}

// === impl FeatureView ===

impl FeatureView<'_> {
    /// Values of one image.
    pub(crate) fn image_len(&self) -> usize {
        self.dims[1..].iter().product()
    }
}

// === impl FeatureMap ===

impl FeatureMap {
    /// Arbitrary values: the caller writes all of them.
    pub fn new(dims: [usize; 4]) -> Self {
        let values = Buffer::take(dims.iter().product());
        Self { values, dims }
    }

    /// Copies `[images, channels, height, width]`, the order in which clients send images, to
    /// channels last.
    ///
    /// # Errors
    /// `planes` has another number of values than `dims`.
    pub fn of_planes(planes: &[f32], dims: [usize; 4]) -> Result<Self, KernelError> {
        let [_, height, width, channels] = dims;
        if planes.len() != dims.iter().product::<usize>() {
            let len = planes.len();
            return Err(KernelError::Shape(format!(
                "{len} values cannot be seen as {dims:?}"
            )));
        }
        let mut map = Self::new(dims);
        let plane = (height * width).max(1);
        let images = planes.chunks_exact(plane * channels);
        for (from, to) in images.zip(map.values.chunks_exact_mut(plane * channels)) {
            for (channel, from) in from.chunks_exact(plane).enumerate() {
                let to = to.iter_mut().skip(channel).step_by(channels);
                for (to, from) in to.zip(from) {
                    *to = *from;
                }
            }
        }
        Ok(map)
    }

    /// A copy as `[images, channels, height, width]`.
    pub fn to_planes(&self) -> Vec<f32> {
        let [images, height, width, channels] = self.dims;
        let plane = height * width;
        if plane == 1 || channels == 1 {
            return self.values.to_vec();
        }
        let mut planes = Vec::with_capacity(self.values.len());
        for image in self.values.chunks_exact((plane * channels).max(1)) {
            for channel in 0..channels {
                planes.extend(image.iter().skip(channel).step_by(channels));
            }
        }
        debug_assert_eq!(planes.len(), images * plane * channels);
        planes
    }

    pub(crate) fn view(&self) -> FeatureView<'_> {
        FeatureView {
            values: &self.values,
            dims: self.dims,
        }
    }

    /// `[images, height, width, channels]`.
    pub fn dims(&self) -> [usize; 4] {
        self.dims
    }

    /// Values of one image.
    pub fn image_len(&self) -> usize {
        self.view().image_len()
    }

    /// The same values seen as another shape.
    ///
    /// # Errors
    /// The shape has another number of values.
    pub fn reshape(self, dims: [usize; 4]) -> Result<Self, KernelError> {
        if self.values.len() != dims.iter().product::<usize>() {
            return Err(KernelError::Shape(format!(
                "{:?} cannot be seen as {dims:?}",
                self.dims
            )));
        }
        Ok(Self { dims, ..self })
    }
}

impl Clone for FeatureMap {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.dims);
        copy.values.copy_from_slice(&self.values);
        copy
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn planes_become_channels() {
        // Two images of three channels, 2 by 2, numbered in the order of the planes.
        let planes: Vec<f32> = (0..2 * 3 * 4).map(|v| v as f32).collect();
        let map = FeatureMap::of_planes(&planes, [2, 2, 2, 3]).unwrap();
        let first = [0., 4., 8., 1., 5., 9., 2., 6., 10., 3., 7., 11.];
        assert_eq!(map.values[..12], first);
        assert_eq!(map.values[12..], first.map(|v| v + 12.0));
        assert_eq!(map.to_planes(), planes);
        assert!(FeatureMap::of_planes(&planes, [2, 2, 2, 4]).is_err());
    }

    #[test]
    fn another_shape_has_the_same_values() {
        let planes: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let map = FeatureMap::of_planes(&planes, [3, 1, 1, 2]).unwrap();
        let map = map.reshape([1, 1, 3, 2]).unwrap();
        assert_eq!((map.dims(), &*map.values), ([1, 1, 3, 2], &planes[..]));
        assert!(map.reshape([1, 1, 3, 3]).is_err());
    }
}
