//! A convolution of each channel on its own, on packed weights.

use std::array;

use super::driver::{ConvBlock, ConvJob, ConvKernel, OutputCut};
use super::tile;
use crate::activation::Activation;
use crate::error::KernelError;
use crate::memory::{Aligned, FeatureMap, Padded};
use crate::simd::vectors::{Simd, Vectorized};
use crate::simd::{dispatch, lanes};
use crate::window::Window2d;

/// Vectors of channels whose sums are in registers at once.
const VECTORS: usize = 4;

/// Weights `[positions, channels]` and biases, each row filled up to whole vectors.
#[derive(Debug)]
pub(super) struct DepthwiseKernel {
    /// `[positions + 1, width]`, the last row the biases.
    weights: Aligned,
    lanes: usize,
    /// Channels, and channels rounded up to whole vectors.
    channels: usize,
    width: usize,
}

/// A block, one line of windows, and where it lies.
struct WindowLine<'a> {
    kernel: &'a DepthwiseKernel,
    window: Window2d,
    /// The padded images from the line's first window on.
    input: &'a [f32],
    /// Values of a line of the padded images.
    pitch: usize,
    activation: Activation,
    /// `[columns, channels]`.
    out: &'a mut [f32],
}

// === impl DepthwiseKernel ===

impl DepthwiseKernel {
    /// Packs `[positions + 1, channels]`, the last row the bias.
    pub(super) fn new(weight: &[f32], channels: usize) -> Self {
        Self::with_lanes(weight, channels, lanes())
    }

    fn with_lanes(weight: &[f32], channels: usize, lanes: usize) -> Self {
        let width = channels.next_multiple_of(lanes);
        let mut weights = Aligned::zeros(weight.len() / channels * width);
        for (to, from) in weights
            .chunks_exact_mut(width)
            .zip(weight.chunks_exact(channels))
        {
            to[..channels].copy_from_slice(from);
        }
        Self {
            weights,
            lanes,
            channels,
            width,
        }
    }
}

impl ConvKernel for DepthwiseKernel {
    type Input = Padded;

    const SHARED_MIN: usize = 1 << 19;

    fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError> {
        let rows = window.positions() + 1;
        if channels == self.channels && rows * self.width == self.weights.len() {
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
        self.weights.len() / self.width.max(1) - 1
    }

    fn prepare(&self, x: &FeatureMap, window: Window2d, _: [usize; 2]) -> Padded {
        Padded::new(x, window.padding)
    }

    fn cut(&self, job: &ConvJob<'_, Self>, len: usize, _: usize) -> OutputCut {
        OutputCut {
            group: len,
            block: job.windows[1] * self.channels,
        }
    }

    fn compute(block: ConvBlock<'_, Self>) {
        dispatch(block);
    }
}

// === impl WindowLine ===

impl Vectorized for ConvBlock<'_, DepthwiseKernel> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { job, from, out } = self;
        let channels = job.kernel.channels;
        let [lines, columns] = job.windows;
        let [height, width] = job.input.size;
        let pitch = width * channels;
        let line = from / (columns * channels);
        let (image, line) = (line / lines, line % lines);
        let first = (image * height + line * job.window.stride[0]) * pitch;
        let line = WindowLine {
            kernel: job.kernel,
            window: job.window,
            input: &job.input.values(job.x)[first..],
            pitch,
            activation: job.activation,
            out,
        };
        line.compute(simd);
    }
}

impl WindowLine<'_> {
    #[inline(always)]
    fn compute<S: Simd>(mut self, simd: S) {
        let kernel = self.kernel;
        // Packed for the same instructions: a process does not change them.
        assert_eq!(kernel.lanes, S::LANES, "weights packed for other vectors");
        let mut from = 0;
        while from < kernel.width {
            from += match (kernel.width - from) / S::LANES {
                VECTORS.. => self.channels::<S, VECTORS>(simd, from),
                _ => self.channels::<S, 1>(simd, from),
            };
        }
    }

    /// All columns by `N` vectors of channels from `from` on; returns the number of channels.
    #[inline(always)]
    fn channels<S: Simd, const N: usize>(&mut self, simd: S, from: usize) -> usize {
        let (kernel, window, pitch) = (self.kernel, self.window, self.pitch);
        let channels = kernel.channels;
        let [kernel_y, kernel_x] = window.kernel;
        let row = |row: usize| -> [S::Vector; N] {
            let values = &kernel.weights[row * kernel.width + from..];
            let vectors = simd.vectors(&values[..N * S::LANES]);
            array::from_fn(|n| vectors[n])
        };
        let biases = row(window.positions());
        let to = (from + N * S::LANES).min(channels);
        let (lines, activation) = (self.input, self.activation);
        for (column, out) in self.out.chunks_exact_mut(channels).enumerate() {
            let start = column * window.stride[1] * channels;
            let mut sums = biases;
            for y in 0..kernel_y {
                for x in 0..kernel_x {
                    let weights = row(y * kernel_x + x);
                    let at = y * pitch + start + x * channels;
                    let values = &lines[at..][from..to];
                    for n in 0..N {
                        // The last vector may be partly filled.
                        let end = ((n + 1) * S::LANES).min(values.len());
                        let value = simd.load(&values[n * S::LANES..end]);
                        sums[n] = simd.mul_add(value, weights[n], sums[n]);
                    }
                }
            }
            tile::finish::<S, N>(simd, sums, None, activation, &mut out[from..to]);
        }
        N * S::LANES
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::driver::convolve;
    use super::*;
    use crate::simd::vectors::Portable;
    use crate::testing::{assert_close, depthwise_convolved, lopsided, random, random_map};

    fn windows() -> Vec<Window2d> {
        vec![
            lopsided([5, 1], [1, 1], [2, 0, 2, 0]),
            Window2d::centred(1, 1),
            Window2d::centred(3, 1),
            Window2d::centred(3, 2),
            Window2d::centred(5, 2),
        ]
    }

    #[test]
    fn results_are_those_of_the_definition() {
        for channels in [1, 3, 8, 18, 36, 75] {
            let x = random_map([2, 7, 6, channels]);
            for window in windows() {
                let weight = random((window.positions() + 1) * channels, 1.0);
                let theirs = depthwise_convolved(&x, &weight, window);
                let packed = DepthwiseKernel::new(&weight, channels);
                let ours = convolve(&packed, &x, window, None, Activation::None).unwrap();
                assert_close(
                    &ours.values,
                    &theirs,
                    1e-4,
                    &format!("{channels} {window:?}"),
                );
            }
        }
    }

    /// Vectors of other lengths, in plain code.
    #[test]
    fn vectors_of_any_length_give_the_same() {
        let channels = 75;
        let window = Window2d::centred(3, 1);
        let weight = random(10 * channels, 1.0);
        let x = random_map([1, 3, 3, channels]);
        let input = Padded::new(&x, window.padding);
        let line = |lanes: usize| {
            let packed = DepthwiseKernel::with_lanes(&weight, channels, lanes);
            let mut out = vec![f32::NAN; 3 * channels];
            let block = ConvBlock {
                job: ConvJob {
                    kernel: &packed,
                    x: &x,
                    input: &input,
                    window,
                    windows: [3, 3],
                    residual: None,
                    activation: Activation::Relu,
                },
                from: 3 * channels,
                out: &mut out,
            };
            match lanes {
                4 => block.run(Portable::<4>),
                _ => block.run(Portable::<16>),
            }
            out
        };
        assert_eq!(line(4), line(16));
        let packed = DepthwiseKernel::new(&weight, channels);
        let whole = convolve(&packed, &x, window, None, Activation::Relu).unwrap();
        let middle = &whole.values[3 * channels..][..3 * channels];
        assert_close(&line(16), middle, 1e-5, "middle line");
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        let packed = DepthwiseKernel::new(&[0.0; 10 * 2], 2);
        let x = random_map([1, 4, 4, 3]);
        let result = convolve(&packed, &x, Window2d::centred(3, 1), None, Activation::None);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("2 channels meet 3"), "{error}");
        let x = random_map([1, 4, 4, 2]);
        let result = convolve(&packed, &x, Window2d::centred(5, 1), None, Activation::None);
        assert!(result.is_err());
    }
}
