//! A convolution of each channel on its own, on packed weights.
//!
//! Images are read in place: a tap outside the image is left out, so there is no copy with padding.
//! [`lines`] computes windows of stride 1, for which a line is one axis of `width * channels`
//! values. [`columns`] computes all other windows, column by column.

mod columns;
mod lines;

use super::driver::{ConvBlock, ConvJob, ConvKernel, OutputCut};
use crate::activation::Activation;
use crate::error::KernelError;
use crate::memory::{Aligned, FeatureMap};
use crate::simd::vectors::{Simd, Vectorized};
use crate::simd::{dispatch, lanes};
use crate::window::Window2d;

/// Values of an image up to which it fits the first-level cache, so that a sweep over its lines
/// finds the values that the sweep before it has loaded.
const SWEPT_MAX: usize = 16 * 1024;

/// Approximate values of a block.
const BLOCK: usize = 64 * 1024;

/// The same for an activation that reads the block again.
const BLOCK_READ_AGAIN: usize = 4 * 1024;

/// Weights `[positions, channels]` and biases.
#[derive(Debug)]
pub(super) struct DepthwiseKernel {
    /// `[positions + 1, pitch]`, the last row the biases. Channels are repeated to the end of a
    /// row, so that a whole vector may start at any channel.
    weights: Aligned,
    lanes: usize,
    channels: usize,
    pitch: usize,
}

/// Lines of the output for one image.
struct DepthwiseLines<'a> {
    kernel: &'a DepthwiseKernel,
    window: Window2d,
    /// `[height, width, channels]`.
    image: &'a [f32],
    /// Lines and columns of the image.
    size: [usize; 2],
    /// The first line.
    first: usize,
    /// Columns of the output.
    columns: usize,
    activation: Activation,
    /// `[lines, columns, channels]`.
    out: &'a mut [f32],
}

// === impl DepthwiseKernel ===

impl DepthwiseKernel {
    /// Packs `[positions + 1, channels]`, the last row the bias.
    pub(super) fn new(weight: &[f32], channels: usize) -> Self {
        Self::with_lanes(weight, channels, lanes())
    }

    fn with_lanes(weight: &[f32], channels: usize, lanes: usize) -> Self {
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
    fn row(&self, position: usize) -> &[f32] {
        &self.weights[position * self.pitch..][..self.pitch]
    }
}

impl ConvKernel for DepthwiseKernel {
    type Input = ();

    const SHARED_MIN: usize = 1 << 19;

    fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError> {
        let rows = window.positions() + 1;
        if channels == self.channels && rows * self.pitch == self.weights.len() {
            return Ok(());
        }
        Err(KernelError::Shape(format!(
            "depthwise weights for {} channels meet {channels} and {window:?}",
            self.channels
        )))
    }

    fn output(&self) -> usize {
        self.channels
    }

    fn products(&self) -> usize {
        // Of all rows of weights, the last one is the bias.
        self.weights.len() / self.pitch.max(1) - 1
    }

    fn prepare(&self, _: &FeatureMap, _: Window2d, _: [usize; 2]) {}

    /// Whole lines of one image.
    fn cut(&self, job: &ConvJob<'_, Self>, len: usize, threads: usize) -> OutputCut {
        let [lines, columns] = job.windows;
        let line = (columns * self.channels).max(1);
        let image = (lines * line).max(1);
        let parts = threads.div_ceil((len / image).max(1)).max(1);
        let values = match job.activation {
            Activation::None | Activation::Relu => BLOCK,
            _ => BLOCK_READ_AGAIN,
        };
        let lines = lines.div_ceil(parts).min((values / line).max(1));
        OutputCut {
            group: image,
            block: lines * line,
        }
    }

    fn compute(block: ConvBlock<'_, Self>) {
        dispatch(block);
    }
}

impl Vectorized for ConvBlock<'_, DepthwiseKernel> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { job, from, out } = self;
        // Packed for the same instructions: a process does not change them.
        assert_eq!(
            job.kernel.lanes,
            S::LANES,
            "weights packed for other vectors"
        );
        let [lines, columns] = job.windows;
        let [_, height, width, channels] = job.x.dims();
        let line = from / (columns * channels);
        let image = height * width * channels;
        let mut lines = DepthwiseLines {
            kernel: job.kernel,
            window: job.window,
            image: &job.x.values[line / lines * image..][..image],
            size: [height, width],
            first: line % lines,
            columns,
            activation: job.activation,
            out,
        };
        match (job.window.kernel, job.window.stride) {
            ([3, 1], [1, 1]) => lines::compute::<S, 1, 4>(simd, &mut lines),
            ([3, 3], [1, 1]) if image <= SWEPT_MAX => {
                lines::compute::<S, 3, 2>(simd, &mut lines);
            }
            _ => columns::compute(simd, &mut lines),
        }
    }
}

#[cfg(test)]
mod tests;
