//! A convolution of each channel on its own, on packed weights.
//!
//! Images are read in place: a tap outside the image is left out, so there is no copy with padding.
//! [`lines`] computes windows of stride 1, for which a line is one axis of `width * channels`
//! values. [`columns`] computes all other windows, column by column. [`packed`] has the weights.

mod columns;
mod lines;
mod packed;

pub(super) use self::packed::DepthwiseKernel;
use self::packed::DepthwiseLines;
use super::driver::{ConvBlock, ConvJob, ConvKernel, OutputCut};
use crate::activation::Activation;
use crate::error::KernelError;
use crate::memory::FeatureView;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};
use crate::window::Window2d;

/// Values of an image up to which it fits the first-level cache, so that a sweep over its lines
/// finds the values that the sweep before it has loaded.
const SWEPT_MAX: usize = 16 * 1024;

/// Approximate values of a block.
const BLOCK: usize = 64 * 1024;

/// The same for an activation that reads the block again.
const BLOCK_READ_AGAIN: usize = 4 * 1024;

// === impl DepthwiseKernel ===

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

    fn prepare(&self, _: FeatureView<'_>, _: Window2d, _: [usize; 2]) {}

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
        let [_, height, width, channels] = job.x.dims;
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
