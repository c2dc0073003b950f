//! A convolution over all channels in bytes: weights of 8 bits, packed once, and inputs rounded to
//! 8 bits as they arrive.
//!
//! Weights are signed, with a scale for each output channel. Inputs are unsigned, with a scale and
//! a zero point for each image, from its smallest and its largest value: so an answer does not
//! depend on the rest of the batch. Products of bytes are added up exactly, so all instruction sets
//! give the same sums; bias, residual and activation are f32.

mod quantised;

use std::array;

use self::quantised::{ByteScale, GROUP, QuantisedImages};
use super::driver::{ConvBlock, ConvJob, ConvKernel, OutputCut};
use super::geometry::{BLOCK_MAX, Geometry};
use super::panels::{self, Panel, Tiles, WeightShape, panels};
use super::tile::Runs;
use crate::activation::{Activation, relu};
use crate::error::KernelError;
use crate::memory::{FeatureView, Weights};
use crate::simd::bytes::{Bytes, OnBytes};
use crate::simd::{byte_shape, dispatch_bytes};
use crate::window::Window2d;

/// Products of 255 and 127 that a 32-bit sum certainly holds.
const ROWS_MAX: usize = (i32::MAX / (255 * 127)) as usize;

/// Channels of the widest panel.
const WIDTH_MAX: usize = 64;

/// Weights `[positions * input, output]` in 8 bits, in panels, and biases.
#[derive(Debug)]
pub(super) struct Int8Kernel {
    /// `[panel][line of the window][group][channel of the panel][4]`, zeros behind a line's last
    /// value and the last channel.
    weights: Weights<i8>,
    /// By channel, filled up to whole panels.
    channels: Vec<OutputChannel>,
    /// Groups of a line of a window.
    groups: usize,
    lanes: usize,
    shape: WeightShape,
}

/// Turns a sum of products into an f32.
#[derive(Clone, Copy, Debug, Default)]
struct OutputChannel {
    scale: f32,
    bias: f32,
    /// The sum's change per unit of the zero point.
    weights: i32,
}

/// Bytes of padded images, and where the windows lie in them.
pub(super) struct Int8Input {
    images: QuantisedImages,
    geometry: Geometry,
}

/// The tiles of a block, and how their bytes are multiplied.
struct Int8Tiles<'a, B> {
    bytes: B,
    kernel: &'a Int8Kernel,
    input: &'a Int8Input,
    /// The block's first position.
    first: usize,
    /// The block's part of the residual.
    residual: Option<&'a [f32]>,
    activation: Activation,
    /// `[positions, output]`.
    out: &'a mut [f32],
}

// === impl Int8Kernel ===

impl Int8Kernel {
    /// Rounds and packs `[rows + 1, output]`, the last row the bias, of a `shape` `[lines, input,
    /// output]`; `rows` is the positions of a window of `lines` lines times `input` channels.
    ///
    /// # Errors
    /// There are more rows than a 32-bit sum holds.
    pub(super) fn new(weight: &[f32], shape: [usize; 3]) -> Result<Self, KernelError> {
        Self::for_vectors(weight, shape, byte_shape())
    }

    fn for_vectors(
        weight: &[f32],
        shape: [usize; 3],
        vectors: [usize; 2],
    ) -> Result<Self, KernelError> {
        let shape = WeightShape::of(weight.len(), shape);
        let WeightShape {
            lines,
            rows,
            output,
            ..
        } = shape;
        if rows > ROWS_MAX {
            return Err(KernelError::TooManyWeights {
                rows,
                max: ROWS_MAX,
            });
        }
        let (rest, bias) = weight.split_at(rows * output);
        let scales = scales(rest, output);
        let run = rows / lines;
        let groups = run.div_ceil(GROUP);
        let padded = panels::padded(output, vectors);
        let mut weights = Weights::<i8>::zeros(lines * groups * GROUP * padded);
        let mut channels = vec![OutputChannel::default(); padded];
        for panel in panels(output, vectors) {
            let width = panel.vectors * vectors[0];
            let each = lines * groups * GROUP;
            let packed = &mut weights[panel.from * each..][..each * width];
            for at in 0..panel.channels {
                let channel = panel.from + at;
                let scale = scales[channel];
                let mut sum = 0;
                for row in 0..rows {
                    let (line, k) = (row / run, row % run);
                    let rounded = rounded(rest[row * output + channel], scale);
                    sum += i32::from(rounded);
                    let group = line * groups + k / GROUP;
                    packed[(group * width + at) * GROUP + k % GROUP] = rounded;
                }
                channels[channel] = OutputChannel {
                    scale,
                    bias: bias[channel],
                    weights: sum,
                };
            }
        }
        Ok(Self {
            weights,
            channels,
            groups,
            lanes: vectors[0],
            shape,
        })
    }
}

/// For each output channel, the weight of one step: the largest absolute weight over 127.
fn scales(weights: &[f32], output: usize) -> Vec<f32> {
    let mut largest = vec![0f32; output];
    for row in weights.chunks_exact(output) {
        for (largest, weight) in largest.iter_mut().zip(row) {
            *largest = largest.max(weight.abs());
        }
    }
    largest.iter().map(|largest| largest / 127.0).collect()
}

/// The nearest multiple of `scale`, in -127..=127.
fn rounded(weight: f32, scale: f32) -> i8 {
    if scale > 0.0 {
        // Only the division's rounding leaves the range; conversions saturate.
        (weight / scale).round_ties_even().clamp(-127.0, 127.0) as i8
    } else {
        0
    }
}

impl ConvKernel for Int8Kernel {
    type Input = Int8Input;

    fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError> {
        self.shape.check(channels, window)
    }

    fn output(&self) -> usize {
        self.shape.output
    }

    fn products(&self) -> usize {
        // A product of bytes costs a fourth of a product of f32.
        self.shape.rows / GROUP
    }

    fn prepare(&self, x: FeatureView<'_>, window: Window2d, windows: [usize; 2]) -> Int8Input {
        let (images, [height, width]) = QuantisedImages::of(x, window.padding);
        Int8Input {
            images,
            geometry: Geometry::new([height, width, self.shape.input], window, windows),
        }
    }

    fn cut(&self, job: &ConvJob<'_, Self>, len: usize, threads: usize) -> OutputCut {
        job.input.geometry.cut(len, self.shape.output, threads, 1)
    }

    fn compute(block: ConvBlock<'_, Self>) {
        dispatch_bytes(block);
    }
}

// === impl Int8Tiles ===

impl OnBytes for ConvBlock<'_, Int8Kernel> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) {
        let Self { job, from, out } = self;
        let kernel = job.kernel;
        let output = kernel.shape.output;
        // Packed for the same instructions: a process does not change them.
        assert_eq!(kernel.lanes, B::LANES, "weights packed for other vectors");
        let mut offsets = [0usize; BLOCK_MAX];
        let offsets = &mut offsets[..out.len() / output];
        let first = from / output;
        job.input.geometry.offsets(first, offsets);
        let mut tiles = Int8Tiles {
            bytes,
            kernel,
            input: job.input,
            first,
            residual: match job.residual {
                Some(all) => Some(&all[from..][..out.len()]),
                None => None,
            },
            activation: job.activation,
            out,
        };
        panels::compute(&mut tiles, output, offsets);
    }
}

impl<B: Bytes> Tiles for Int8Tiles<'_, B> {
    const LANES: usize = B::LANES;
    const REGISTERS: usize = B::REGISTERS;
    const STEPS: usize = 1;

    #[inline(always)]
    fn tile<const M: usize, const N: usize>(
        &mut self,
        panel: Panel,
        from: usize,
        offsets: &[usize],
    ) {
        let (bytes, kernel) = (self.bytes, self.kernel);
        let Int8Input { images, geometry } = self.input;
        let (output, groups) = (kernel.shape.output, kernel.groups);
        let count = GROUP * kernel.shape.lines * groups;
        let weights = &kernel.weights[panel.from * count..][..N * B::LANES * count];
        let weights = bytes.vectors(weights).as_chunks::<N>().0;
        let last = offsets.len() - 1;
        let inputs: [&[u8]; M] = array::from_fn(|m| &images.bytes[offsets[m.min(last)]..]);
        let sums = multiply::<B, M, N>(bytes, inputs, weights, groups, geometry.runs);
        let channels = &kernel.channels[panel.from..][..N * B::LANES];
        // Indexed by constants once unrolled: otherwise the sums stay in memory.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let position = from + m;
            let mut whole = [0i32; WIDTH_MAX];
            for n in 0..N {
                bytes.store(&mut whole[n * B::LANES..][..B::LANES], sums[m][n]);
            }
            let at = position * output + panel.from;
            let scale = images.scales[(self.first + position) / geometry.per_image()];
            let residual = self.residual.map(|all| &all[at..][..panel.channels]);
            finish(
                &whole[..N * B::LANES],
                channels,
                scale,
                residual,
                self.activation,
                &mut self.out[at..][..panel.channels],
            );
        }
    }
}

/// For each position, the products of its runs and the channels' weights.
#[inline(always)]
fn multiply<B: Bytes, const M: usize, const N: usize>(
    bytes: B,
    inputs: [&[u8]; M],
    weights: &[[B::Weights; N]],
    groups: usize,
    runs: Runs,
) -> [[B::Sums; N]; M] {
    let mut sums = [[bytes.zero(); N]; M];
    for line in 0..runs.lines {
        let weights = &weights[line * groups..][..groups];
        // A line's last group may extend beyond its run, where weights are zero.
        let inputs: [&[[u8; 4]]; M] = array::from_fn(|m| {
            let run = &inputs[m][line * runs.pitch..][..groups * GROUP];
            &run.as_chunks().0[..groups]
        });
        for k in 0..groups {
            for m in 0..M {
                let input = bytes.splat(inputs[m][k]);
                for n in 0..N {
                    sums[m][n] = bytes.add_products(sums[m][n], input, weights[k][n]);
                }
            }
        }
    }
    sums
}

/// Turns sums of one position and one panel's channels into f32. Products and sums are rounded one
/// by one, so that all instruction sets give the same.
#[inline(always)]
fn finish(
    sums: &[i32],
    channels: &[OutputChannel],
    scale: ByteScale,
    residual: Option<&[f32]>,
    activation: Activation,
    out: &mut [f32],
) {
    let each = sums.iter().zip(channels).zip(out.iter_mut());
    for ((sum, channel), out) in each {
        let zero = scale.zero_point.wrapping_mul(channel.weights);
        let sum = sum.wrapping_sub(zero) as f32;
        *out = sum * (scale.step * channel.scale) + channel.bias;
    }
    if let Some(residual) = residual {
        for (out, residual) in out.iter_mut().zip(residual) {
            *out += residual;
        }
    }
    if activation == Activation::Relu {
        for out in out {
            *out = relu(*out);
        }
    }
}

#[cfg(test)]
mod tests;
