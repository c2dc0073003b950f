//! Packed weights, and the lines of an image that they are multiplied with.

use crate::activation::Activation;
use crate::memory::Aligned;
use crate::simd::lanes;
use crate::window::Window2d;

/// Weights `[positions, channels]` and biases.
#[derive(Debug)]
pub(in crate::convolution) struct DepthwiseKernel {
    /// `[positions + 1, pitch]`, the last row the biases. Channels are repeated to the end of a
    /// row, so that a whole vector may start at any channel.
    pub(super) weights: Aligned,
    pub(super) lanes: usize,
    pub(super) channels: usize,
    pub(super) pitch: usize,
}

/// Lines of the output for one image.
pub(super) struct DepthwiseLines<'a> {
    pub(super) kernel: &'a DepthwiseKernel,
    pub(super) window: Window2d,
    /// `[height, width, channels]`.
    pub(super) image: &'a [f32],
    /// Lines and columns of the image.
    pub(super) size: [usize; 2],
    /// The first line.
    pub(super) first: usize,
    /// Columns of the output.
    pub(super) columns: usize,
    pub(super) activation: Activation,
    /// `[lines, columns, channels]`.
    pub(super) out: &'a mut [f32],
}

// === impl DepthwiseKernel ===

impl DepthwiseKernel {
    /// Packs `[positions + 1, channels]`, the last row the bias.
    pub(in crate::convolution) fn new(weight: &[f32], channels: usize) -> Self {
        Self::with_lanes(weight, channels, lanes())
    }

    pub(super) fn with_lanes(weight: &[f32], channels: usize, lanes: usize) -> Self {
        let pitch = (channels + lanes).next_multiple_of(lanes);
        let mut weights = Aligned::zeros(weight.len() / channels * pitch);
        let rows = weight.chunks_exact(channels);
        for (to, from) in weights.chunks_exact_mut(pitch).zip(rows) {
            for (to, from) in to.iter_mut().zip(from.iter().cycle()) {
                *to = *from;
            }
        }
        Self {
            weights,
            lanes,
            channels,
            pitch,
        }
    }

    /// The weights of a position of the window, or behind the last one the biases.
    #[inline(always)]
    pub(super) fn row(&self, position: usize) -> &[f32] {
        &self.weights[position * self.pitch..][..self.pitch]
    }
}
