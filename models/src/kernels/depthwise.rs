//! A convolution of each channel by itself.

use std::array;

use rayon::prelude::*;

use super::dense::padded;
use super::scratch::Aligned;
use super::simd::{Simd, Vectorized, dispatch, lanes};
use super::{Activation, Map, gates, tile};
use crate::unfold2d::Window2d;

/// Vectors of channels whose sums are in registers at once.
const VECTORS: usize = 4;

/// Multiply-adds below which a convolution is not shared among threads.
const SHARED_MIN: usize = 1 << 19;

/// Weights `[positions, channels]` and biases, each row filled up to whole vectors.
#[derive(Debug)]
pub(crate) struct Depthwise {
    /// `[positions + 1, width]`, the last row the biases.
    weights: Aligned,
    lanes: usize,
    /// Channels, and what they are filled up to.
    channels: usize,
    width: usize,
}

/// What one call reads.
#[derive(Clone, Copy)]
struct Call<'a> {
    depthwise: &'a Depthwise,
    window: Window2d,
    /// Padded pictures.
    input: &'a [f32],
    /// Numbers in one picture and in one of its lines.
    picture: usize,
    pitch: usize,
    /// Lines and columns of windows over a picture.
    windows: [usize; 2],
    activation: Activation,
}

/// One line of windows.
struct Line<'a> {
    call: Call<'a>,
    /// Counted over all pictures.
    line: usize,
    /// `[columns, channels]`.
    out: &'a mut [f32],
}

// === impl Depthwise ===

impl Depthwise {
    /// Packs `[positions + 1, channels]`, the last row the bias.
    pub(crate) fn new(weight: &[f32], channels: usize) -> Self {
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

    /// Convolves each channel of `x` with windows of this many positions; applies `activation`.
    ///
    /// # Errors
    /// Shapes do not fit, or a picture with its padding is smaller than a window.
    pub(crate) fn forward(
        &self,
        x: &Map,
        window: Window2d,
        activation: Activation,
    ) -> candle_core::Result<Map> {
        let [pictures, height, width, channels] = x.dims();
        let rows = window.positions() + 1;
        if channels != self.channels || rows * self.width != self.weights.len() {
            candle_core::bail!(
                "depthwise weights for {} channels meet {channels} and {window:?}",
                self.channels
            );
        }
        let windows = window.output(height, width)?;
        let mut result = Map::new([pictures, windows[0], windows[1], channels]);
        let padded = padded(x, window.padding);
        let (input, [padded_height, padded_width]) = match &padded {
            Some((buffer, size)) => (&**buffer, *size),
            None => (&*x.numbers, [height, width]),
        };
        let call = Call {
            depthwise: self,
            window,
            input,
            picture: padded_height * padded_width * channels,
            pitch: padded_width * channels,
            windows,
            activation,
        };
        call.run(&mut result.numbers);
        Ok(result)
    }
}

// === impl Call ===

impl Call<'_> {
    fn run(self, out: &mut [f32]) {
        let threads = match out.len() * self.window.positions() {
            ..SHARED_MIN => 1,
            _ => rayon::current_num_threads(),
        };
        let numbers = (self.windows[1] * self.depthwise.channels).max(1);
        let run = |(line, out): (usize, &mut [f32])| {
            dispatch(Line {
                call: self,
                line,
                out,
            });
            if self.activation == Activation::Silu {
                gates::silu(out);
            }
        };
        if threads > 1 {
            out.par_chunks_mut(numbers).enumerate().for_each(run);
        } else {
            out.chunks_mut(numbers).enumerate().for_each(run);
        }
    }
}

// === impl Line ===

impl Vectorized for Line<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let depthwise = self.call.depthwise;
        assert_eq!(
            depthwise.lanes,
            S::LANES,
            "weights packed for other vectors"
        );
        let mut from = 0;
        while from < depthwise.width {
            from += match (depthwise.width - from) / S::LANES {
                VECTORS.. => self.channels::<S, VECTORS>(simd, from),
                _ => self.channels::<S, 1>(simd, from),
            };
        }
    }
}

impl Line<'_> {
    /// All columns by `N` vectors of channels from `from` on; returns how many channels these are.
    #[inline(always)]
    fn channels<S: Simd, const N: usize>(&mut self, simd: S, from: usize) -> usize {
        let Call {
            depthwise,
            window,
            input,
            picture,
            pitch,
            windows,
            activation,
        } = self.call;
        let channels = depthwise.channels;
        let [kernel_y, kernel_x] = window.kernel;
        let row = |row: usize| -> [S::Vector; N] {
            let numbers = &depthwise.weights[row * depthwise.width + from..];
            let vectors = simd.vectors(&numbers[..N * S::LANES]);
            array::from_fn(|n| vectors[n])
        };
        let biases = row(window.positions());
        let to = (from + N * S::LANES).min(channels);
        let (of, line) = (self.line / windows[0], self.line % windows[0]);
        let lines = &input[of * picture + line * window.stride[0] * pitch..];
        for (column, out) in self.out.chunks_exact_mut(channels).enumerate() {
            let start = column * window.stride[1] * channels;
            let mut sums = biases;
            for y in 0..kernel_y {
                for x in 0..kernel_x {
                    let weights = row(y * kernel_x + x);
                    let at = y * pitch + start + x * channels;
                    let values = &lines[at..][from..to];
                    for n in 0..N {
                        // The last vector is filled up.
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
    use candle_core::{Device, Tensor};

    use super::super::simd::Portable;
    use super::super::testing::{map, numbers, random};
    use super::*;
    use crate::unfold2d::Padding;

    fn windows() -> Vec<Window2d> {
        let over_time = Window2d {
            kernel: [5, 1],
            stride: [1, 1],
            padding: Padding {
                top: 2,
                bottom: 2,
                ..Padding::default()
            },
        };
        let mut windows = vec![over_time];
        for (kernel, stride) in [(1, 1), (3, 1), (3, 2), (5, 2)] {
            windows.push(Window2d::centred(kernel, stride));
        }
        windows
    }

    #[test]
    fn results_are_those_of_the_plain_operation() {
        for channels in [1, 3, 8, 18, 36, 75] {
            let x = random(&[2, 7, 6, channels], 1.0);
            for window in windows() {
                let weight = random(&[window.positions() + 1, channels], 1.0);
                let theirs = crate::depthwise::depthwise(&x, &weight, window).unwrap();
                let packed = Depthwise::new(&numbers(&weight), channels);
                let map = map(&x);
                let ours = packed.forward(&map, window, Activation::None).unwrap();
                assert_eq!(ours.dims().as_slice(), theirs.dims());
                for (a, b) in ours.numbers.iter().zip(numbers(&theirs)) {
                    assert!((a - b).abs() < 1e-4, "{channels} {window:?}: {a} {b}");
                }
            }
        }
    }

    /// Vectors of other machines, one number at a time.
    #[test]
    fn vectors_of_any_length_give_the_same() {
        let channels = 75;
        let window = Window2d::centred(3, 1);
        let weight = numbers(&random(&[10, channels], 1.0));
        let x = random(&[1, 3, 3, channels], 1.0);
        let input = numbers(&x.pad_with_zeros(1, 1, 1).unwrap());
        let input: Vec<f32> = {
            let x = Tensor::from_vec(input, (1, 5, 3, channels), &Device::Cpu).unwrap();
            numbers(&x.pad_with_zeros(2, 1, 1).unwrap())
        };
        let line = |lanes: usize| {
            let packed = Depthwise::with_lanes(&weight, channels, lanes);
            let mut out = vec![f32::NAN; 3 * channels];
            let call = Call {
                depthwise: &packed,
                window,
                input: &input,
                picture: 25 * channels,
                pitch: 5 * channels,
                windows: [3, 3],
                activation: Activation::Relu,
            };
            let line = Line {
                call,
                line: 1,
                out: &mut out,
            };
            match lanes {
                4 => line.run(Portable::<4>),
                _ => line.run(Portable::<16>),
            }
            out
        };
        assert_eq!(line(4), line(16));
        let map = Map::of(&x, [1, 3, 3, channels]).unwrap();
        let packed = Depthwise::new(&weight, channels);
        let whole = packed.forward(&map, window, Activation::Relu).unwrap();
        let middle = &whole.numbers[3 * channels..][..3 * channels];
        for (a, b) in line(16).iter().zip(middle) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}
