//! A convolution over all channels in bytes: weights of 8 bits, packed once, and inputs rounded to
//! 8 bits as they come.
//!
//! Weights are signed, with a scale for each output channel. A picture is unsigned, with a scale
//! and a zero point of its own, from its smallest and its largest number: an answer does not depend
//! on what it is computed beside. Products of bytes are added up exactly, so that all instructions
//! give the same; bias, residual and activation are of f32.

mod quantised;

use std::array;

use self::quantised::{Quantised, Scale};
use super::blocks::{BLOCK_MAX, Geometry};
use super::bytes::{self, Bytes, OnBytes, dispatch};
use super::panels::{self, Panel, Shape, Tiles, panels};
use super::scratch::Aligned;
use super::tile::Runs;
use super::{Activation, Map, gates};
use crate::unfold2d::Window2d;

/// Products that a sum of 32 bits surely holds: of 255 and 127.
const ROWS_MAX: usize = (i32::MAX / (255 * 127)) as usize;

/// Inputs that are multiplied at once.
const GROUP: usize = 4;

/// Numbers of the widest panel.
const WIDTH_MAX: usize = 64;

/// Weights `[positions * input, output]` in 8 bits, in panels, and biases.
#[derive(Debug)]
pub(crate) struct Int8Dense {
    /// `[panel][line of the window][group][channel of the panel][4]`, zeros behind a line's last
    /// number and the last channel.
    weights: Aligned<i8>,
    /// By channel, filled up to whole panels.
    channels: Vec<Channel>,
    /// Of a line of a window.
    groups: usize,
    lanes: usize,
    shape: Shape,
}

/// What makes a number of a sum of products.
#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    scale: f32,
    bias: f32,
    /// What a zero point of 1 adds to the sum.
    weights: i32,
}

/// What one call reads and writes.
#[derive(Clone, Copy)]
struct Call<'a> {
    dense: &'a Int8Dense,
    input: &'a Quantised,
    geometry: Geometry,
    residual: Option<&'a [f32]>,
    activation: Activation,
}

/// Some of the positions of a call.
struct Block<'a> {
    call: Call<'a>,
    first: usize,
    /// `[positions, output]`.
    out: &'a mut [f32],
}

/// A block, and how its bytes are multiplied.
struct With<'a, B> {
    bytes: B,
    block: Block<'a>,
}

// === impl Int8Dense ===

impl Int8Dense {
    /// Rounds and packs `[rows + 1, output]`, the last row the bias, of a `shape` `[lines, input,
    /// output]`; `rows` is the positions of a window of `lines` lines times `input` channels.
    ///
    /// # Errors
    /// There are more rows than sums of 32 bits hold.
    pub(crate) fn new(weight: &[f32], shape: [usize; 3]) -> candle_core::Result<Self> {
        Self::for_vectors(weight, shape, bytes::shape())
    }

    fn for_vectors(
        weight: &[f32],
        shape: [usize; 3],
        vectors: [usize; 2],
    ) -> candle_core::Result<Self> {
        let shape = Shape::of(weight.len(), shape);
        let Shape {
            lines,
            rows,
            output,
            ..
        } = shape;
        if rows > ROWS_MAX {
            candle_core::bail!("{rows} weights of an output in 8 bits, at most {ROWS_MAX} can be");
        }
        let (rest, bias) = weight.split_at(rows * output);
        let scales = scales(rest, output);
        let run = rows / lines;
        let groups = run.div_ceil(GROUP);
        let padded = panels::padded(output, vectors);
        let mut weights = Aligned::<i8>::zeros(lines * groups * GROUP * padded);
        let mut channels = vec![Channel::default(); padded];
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
                channels[channel] = Channel {
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

    /// Convolves `x` with windows of this many positions; adds `residual`, which has the
    /// result's shape; applies `activation`.
    ///
    /// # Errors
    /// Shapes do not fit, or a picture with its padding is smaller than a window.
    pub(crate) fn forward(
        &self,
        x: &Map,
        window: Window2d,
        residual: Option<&Map>,
        activation: Activation,
    ) -> candle_core::Result<Map> {
        let mut result = self.shape.result(x, window, residual)?;
        let [_, lines, columns, _] = result.dims();
        let (input, [height, width]) = Quantised::of(x, window.padding);
        let call = Call {
            dense: self,
            input: &input,
            geometry: Geometry::new([height, width, self.shape.input], window, [lines, columns]),
            residual: residual.map(|residual| &*residual.numbers),
            activation,
        };
        let compute = |first, out: &mut [f32]| {
            dispatch(Block { call, first, out });
            if activation == Activation::Silu {
                gates::silu(out);
            }
        };
        // A product of bytes is a fourth of one of numbers.
        let rows = self.shape.rows / GROUP;
        let out = &mut *result.numbers;
        call.geometry.share(out, self.shape.output, rows, compute);
        Ok(result)
    }
}

/// For each output channel, what 127 stands for over 127: the largest weight either way.
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
        // Within the range but for the division's rounding; conversions saturate.
        (weight / scale).round_ties_even().clamp(-127.0, 127.0) as i8
    } else {
        0
    }
}

// === impl Block ===

impl OnBytes for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, bytes: B) {
        let dense = self.call.dense;
        let output = dense.shape.output;
        // Packed by the same dispatch: a process does not change its instructions.
        assert_eq!(dense.lanes, B::LANES, "weights packed for other vectors");
        let mut offsets = [0usize; BLOCK_MAX];
        let offsets = &mut offsets[..self.out.len() / output];
        self.call.geometry.offsets(self.first, offsets);
        let block = self;
        panels::compute(&mut With { bytes, block }, output, offsets);
    }
}

impl<B: Bytes> Tiles for With<'_, B> {
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
        let Call {
            dense,
            input,
            geometry,
            residual,
            activation,
        } = self.block.call;
        let bytes = self.bytes;
        let (output, first) = (dense.shape.output, self.block.first);
        let numbers = GROUP * dense.shape.lines * dense.groups;
        let weights = &dense.weights[panel.from * numbers..][..N * B::LANES * numbers];
        let weights = bytes.vectors(weights).as_chunks::<N>().0;
        let last = offsets.len() - 1;
        let inputs: [&[u8]; M] = array::from_fn(|m| &input.bytes[offsets[m.min(last)]..]);
        let sums = multiply::<B, M, N>(bytes, inputs, weights, dense.groups, geometry.runs);
        let channels = &dense.channels[panel.from..][..N * B::LANES];
        // By constants, once unrolled: otherwise the sums were kept in memory.
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
            let scale = input.scales[(first + position) / geometry.per_picture()];
            let residual = residual.map(|all| &all[first * output + at..][..panel.channels]);
            finish(
                &whole[..N * B::LANES],
                channels,
                scale,
                residual,
                activation,
                &mut self.block.out[at..][..panel.channels],
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
        // A line's last group may reach behind its run, where weights are zero.
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

/// Numbers of sums of one position and the channels of one panel. Products and sums are rounded
/// one by one, so that all instructions give the same.
#[inline(always)]
fn finish(
    sums: &[i32],
    channels: &[Channel],
    scale: Scale,
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
            *out = out.max(0.0);
        }
    }
}

#[cfg(test)]
mod tests;
