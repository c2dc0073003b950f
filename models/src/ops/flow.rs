//! Activations between layers: tensors where a gradient or another device needs them, and values in
//! reused memory elsewhere.
//!
//! Networks are written once, over [`Flow`]; the [`ComputeMode`] of their parameters decides.

use candle_core::{Result, Tensor};
use switchyard_kernels::{self as kernels, FeatureMap, Window2d, gates, pooling};

use super::channels::scale_channels;
use super::pointwise::{hard_sigmoid, relu};
use super::pooling::{max_pool, mean_over_positions, mean_pool};
use super::tensors::{kernel_error, to_map, to_tensor, with_values};
use crate::weights::mode::ComputeMode;

/// Activations between two layers: images `[batch, height, width, channels]`, or a sequence
/// `[batch, length, channels]`, which as a [`FeatureMap`] has a height of 1.
pub(crate) enum Flow {
    /// In [`ComputeMode::Graph`].
    Graph(Tensor),
    /// In [`ComputeMode::Packed`].
    Packed(FeatureMap),
}

// === impl Flow ===

impl Flow {
    /// Images, channels last: `[batch, height, width, channels]`.
    pub(crate) fn images(mode: ComputeMode, x: &Tensor) -> Result<Self> {
        match mode {
            ComputeMode::Graph => Ok(Self::Graph(x.clone())),
            ComputeMode::Packed => to_map(x, x.dims4()?.into()).map(Self::Packed),
        }
    }

    /// Images as clients send them, `[batch, channels * height * width]`, to channels last.
    pub(crate) fn planes(
        mode: ComputeMode,
        x: &Tensor,
        [channels, height, width]: [usize; 3],
    ) -> Result<Self> {
        let (batch, samples) = x.dims2()?;
        if samples != channels * height * width {
            candle_core::bail!(
                "input has {samples} samples, the model takes {channels} x {height} x {width}"
            );
        }
        match mode {
            ComputeMode::Graph => x
                .reshape((batch, channels, height, width))?
                .permute((0, 2, 3, 1))?
                .contiguous()
                .map(Self::Graph),
            ComputeMode::Packed => {
                let dims = [batch, height, width, channels];
                let map = with_values(x, |values| FeatureMap::of_planes(values, dims))?;
                map.map(Self::Packed).map_err(kernel_error)
            }
        }
    }

    /// A sequence `[batch, length, channels]`.
    pub(crate) fn sequence(mode: ComputeMode, x: &Tensor) -> Result<Self> {
        match mode {
            ComputeMode::Graph => Ok(Self::Graph(x.clone())),
            ComputeMode::Packed => {
                let (batch, length, channels) = x.dims3()?;
                to_map(x, [batch, 1, length, channels]).map(Self::Packed)
            }
        }
    }

    /// The tensor of [`ComputeMode::Graph`].
    ///
    /// # Errors
    /// The activations are of the other mode.
    pub(crate) fn as_tensor(&self) -> Result<&Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(_) => other_mode(),
        }
    }

    /// The map of [`ComputeMode::Packed`].
    ///
    /// # Errors
    /// The activations are of the other mode.
    pub(crate) fn as_map(&self) -> Result<&FeatureMap> {
        match self {
            Self::Graph(_) => other_mode(),
            Self::Packed(map) => Ok(map),
        }
    }

    /// `[batch, height, width, channels]`; of images.
    pub(crate) fn dims4(&self) -> Result<[usize; 4]> {
        match self {
            Self::Graph(x) => x.dims4().map(Into::into),
            Self::Packed(map) => Ok(map.dims()),
        }
    }

    /// The same values as images of another shape.
    pub(crate) fn reshape(self, dims: [usize; 4]) -> Result<Self> {
        match self {
            Self::Graph(x) => x.reshape(&dims).map(Self::Graph),
            Self::Packed(map) => map.reshape(dims).map(Self::Packed).map_err(kernel_error),
        }
    }

    /// A tensor `[batch, height, width, channels]`.
    pub(crate) fn into_images(self) -> Result<Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(map) => to_tensor(&map, &map.dims()),
        }
    }

    /// A tensor `[batch, length, channels]`; of a sequence.
    pub(crate) fn into_sequence(self) -> Result<Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(map) => {
                let [batch, _, length, channels] = map.dims();
                to_tensor(&map, (batch, length, channels))
            }
        }
    }

    /// A tensor `[batch, channels]`; of feature vectors.
    pub(crate) fn into_rows(self) -> Result<Tensor> {
        match self {
            Self::Graph(x) => Ok(x),
            Self::Packed(map) => {
                let [batch, .., channels] = map.dims();
                to_tensor(&map, (batch, channels))
            }
        }
    }

    /// Mean over all positions of images: feature vectors.
    pub(crate) fn mean_pool(&self) -> Result<Self> {
        match self {
            Self::Graph(x) => mean_pool(x).map(Self::Graph),
            Self::Packed(map) => Ok(Self::Packed(pooling::mean(map))),
        }
    }

    /// Mean over the length of sequences: feature vectors.
    pub(crate) fn mean_over_length(&self) -> Result<Self> {
        match self {
            Self::Graph(x) => mean_over_positions(x).map(Self::Graph),
            Self::Packed(map) => Ok(Self::Packed(pooling::mean(map))),
        }
    }

    /// Largest value of each window and channel; positions outside the image count as 0.
    pub(crate) fn max_pool(&self, window: Window2d) -> Result<Self> {
        match self {
            Self::Graph(x) => max_pool(x, window).map(Self::Graph),
            Self::Packed(map) => pooling::max(map, window, 0.0)
                .map(Self::Packed)
                .map_err(kernel_error),
        }
    }

    /// Images times one factor per image and channel, `factors` `[batch, channels]`.
    pub(crate) fn scale_channels(self, factors: &Self) -> Result<Self> {
        match self {
            Self::Graph(x) => scale_channels(&x, factors.as_tensor()?).map(Self::Graph),
            Self::Packed(mut map) => {
                gates::scale(&mut map, factors.as_map()?).map_err(kernel_error)?;
                Ok(Self::Packed(map))
            }
        }
    }

    /// `1 / (1 + exp(-x))`.
    pub(crate) fn sigmoid(self) -> Result<Self> {
        match self {
            Self::Graph(x) => candle_nn::ops::sigmoid(&x).map(Self::Graph),
            Self::Packed(mut map) => {
                gates::sigmoid(&mut map.values);
                Ok(Self::Packed(map))
            }
        }
    }

    /// `x / 6 + 1 / 2`, at least 0 and at most 1.
    pub(crate) fn hard_sigmoid(self) -> Result<Self> {
        match self {
            Self::Graph(x) => hard_sigmoid(&x).map(Self::Graph),
            Self::Packed(mut map) => {
                gates::hard_sigmoid(&mut map.values);
                Ok(Self::Packed(map))
            }
        }
    }

    /// The sum of two activations of one shape.
    pub(crate) fn plus(self, other: &Self) -> Result<Self> {
        match self {
            Self::Graph(x) => (x + other.as_tensor()?).map(Self::Graph),
            Self::Packed(mut map) => {
                let other = other.as_map()?;
                if map.dims() != other.dims() {
                    candle_core::bail!("a sum of {:?} and {:?}", map.dims(), other.dims());
                }
                for (value, other) in map.values.iter_mut().zip(other.values.iter()) {
                    *value += other;
                }
                Ok(Self::Packed(map))
            }
        }
    }

    /// `max(x, 0)`.
    pub(crate) fn relu(self) -> Result<Self> {
        match self {
            Self::Graph(x) => relu(&x).map(Self::Graph),
            Self::Packed(mut map) => {
                for value in map.values.iter_mut() {
                    *value = kernels::relu(*value);
                }
                Ok(Self::Packed(map))
            }
        }
    }
}

/// The error that a layer made for one mode was given activations of the other.
fn other_mode<T>() -> Result<T> {
    candle_core::bail!("a layer meets activations of another mode")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;

    use super::*;

    #[test]
    fn planes_become_channels_in_both_modes() {
        let x: Vec<f32> = (0..2 * 3 * 2 * 2).map(|v| v as f32).collect();
        let x = Tensor::from_vec(x, (2, 12), &Device::Cpu).unwrap();
        let [graph, packed] = [ComputeMode::Graph, ComputeMode::Packed].map(|mode| {
            let images = Flow::planes(mode, &x, [3, 2, 2]).unwrap().into_images();
            let images = images.unwrap();
            assert_eq!(images.dims(), [2, 2, 2, 3]);
            images.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        });
        assert_eq!(graph, packed);
        assert!(Flow::planes(ComputeMode::Packed, &x, [4, 2, 2]).is_err());
    }
}
