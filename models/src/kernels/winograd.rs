//! A convolution of 3 x 3 windows with fewer products: Winograd's F(2 x 2, 3 x 3), as in Lavin and
//! Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv:1509.09308, section 4.1).
//!
//! A tile of 2 x 2 outputs reads 4 x 4 numbers of a channel. Transformed, by additions only, they are
//! multiplied by the channel's transformed weights point by point: 16 products instead of 36. For each
//! of the 16 points, all tiles of a block by all channels are one product of matrices, which is what
//! [`tile`] is good at; then the sums are transformed back. Weights take 16 numbers instead of 9.
//!
//! Results differ from the plain sum's by a few roundings. A number that is not finite reaches all
//! outputs of the tiles that read it, not only those whose windows have it.

mod transforms;

use std::array;

use rayon::prelude::*;

use self::transforms::{of_weights, read_tile, write_tile};
use super::blocks::{BLOCK_MAX, SHARED_MIN};
use super::dense::padded;
use super::panels::{self, Panel, Shape, Tiles, panels};
use super::products::Singles;
use super::scratch::{Aligned, Buffer};
use super::simd::{Simd, Vectorized, dispatch, lanes, registers};
use super::tile::{self, Runs, finish_vector};
use super::{Activation, Map, gates};
use crate::unfold2d::{Padding, Window2d};

/// Outputs of a tile, along each axis.
const TILE: usize = 2;

/// Numbers that a tile reads, along each axis.
const READ: usize = TILE + 2;

/// Products of a tile for each channel.
const POINTS: usize = READ * READ;

/// Channels below which the transforms outweigh what they save: with 16, a batch took longer.
const CHANNELS_MIN: usize = 32;

/// Weights above which they no longer stay in a cache from one block to the next, of which there
/// are few where there are that many channels.
const WEIGHTS_MAX: usize = 256 * 256;

/// Tiles of a block, about: their transforms, in and out, stay in a second-level cache.
const BLOCK_TILES: usize = 32;

/// Transformed weights and biases, in panels.
#[derive(Debug)]
pub(crate) struct Winograd {
    /// `[point][panel][input channel][channel of the panel]`, zeros behind the last channel.
    weights: Aligned,
    /// `[panel][channel of the panel]`.
    biases: Aligned,
    lanes: usize,
    shape: Shape,
}

/// What one call reads.
#[derive(Clone, Copy)]
struct Call<'a> {
    winograd: &'a Winograd,
    /// Padded pictures, in which every tile lies whole.
    input: &'a [f32],
    /// Lines and columns of one.
    size: [usize; 2],
    /// Columns of outputs.
    columns: usize,
    residual: Option<&'a [f32]>,
    activation: Activation,
}

/// Some lines of outputs of a picture, an even number but at its end.
struct Block<'a> {
    call: Call<'a>,
    picture: usize,
    line: usize,
    /// Where these outputs are among all.
    from: usize,
    /// `[lines, columns, output]`.
    out: &'a mut [f32],
}

/// Tiles that are multiplied together: columns `from..from + across` of `down` lines of tiles.
#[derive(Clone, Copy)]
struct Span {
    from: usize,
    across: usize,
    down: usize,
}

/// Where a tile's first output is in a block, and whether there are others beside and below it.
#[derive(Clone, Copy)]
struct Corner {
    at: usize,
    right: bool,
    below: bool,
}

/// The product of one point.
struct Point<'a, S> {
    simd: S,
    /// `[panel][input channel][channel of the panel]`.
    weights: &'a [f32],
    /// `[tiles, input]`.
    inputs: &'a [f32],
    shape: Shape,
    /// `[tiles, output]`.
    sums: &'a mut [f32],
}

// === impl Winograd ===

impl Winograd {
    /// Whether it computes such a convolution sooner than [`Dense`](super::Dense).
    pub(crate) fn suits(window: Window2d, [input, output]: [usize; 2]) -> bool {
        window.kernel == [3, 3]
            && window.stride == [1, 1]
            && input.min(output) >= CHANNELS_MIN
            && input * output <= WEIGHTS_MAX
    }

    /// Transforms and packs `[9 * input + 1, output]`, the last row the bias.
    pub(crate) fn new(weight: &[f32], [input, output]: [usize; 2]) -> Self {
        Self::for_vectors(weight, [input, output], [lanes(), registers()])
    }

    fn for_vectors(weight: &[f32], [input, output]: [usize; 2], vectors: [usize; 2]) -> Self {
        let shape = Shape::of(weight.len(), [3, input, output]);
        let (rest, bias) = weight.split_at(shape.rows * output);
        let padded = panels::padded(output, vectors);
        let mut weights = Aligned::zeros(POINTS * input * padded);
        let mut biases = Aligned::zeros(padded);
        for panel in panels(output, vectors) {
            let width = panel.vectors * vectors[0];
            let Panel { from, channels, .. } = panel;
            biases[from..][..channels].copy_from_slice(&bias[from..][..channels]);
            for row in 0..input {
                let window: [[&[f32]; 3]; 3] = array::from_fn(|y| {
                    array::from_fn(|x| &rest[((3 * y + x) * input + row) * output + from..])
                });
                for channel in 0..channels {
                    let window = window.map(|line| line.map(|row| f64::from(row[channel])));
                    for (point, number) in of_weights(window).into_iter().enumerate() {
                        let panel = (point * padded + from) * input;
                        weights[panel + row * width + channel] = number;
                    }
                }
            }
        }
        Self {
            weights,
            biases,
            lanes: vectors[0],
            shape,
        }
    }

    /// Convolves `x` with windows that it [suits](Self::suits); adds `residual`, which has the
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
        if window.kernel != [3, 3] || window.stride != [1, 1] {
            candle_core::bail!("weights for 3 x 3 windows at every position meet {window:?}");
        }
        let mut result = self.shape.result(x, window, residual)?;
        let [_, height, width, _] = x.dims();
        let [_, lines, columns, output] = result.dims();
        let Padding { top, left, .. } = window.padding;
        // Tiles are whole, also where an odd line or column is left.
        let behind = |outputs: usize, before: usize, length: usize| {
            (outputs.next_multiple_of(TILE) + 2).saturating_sub(before + length)
        };
        let padding = Padding {
            top,
            left,
            bottom: behind(lines, top, height),
            right: behind(columns, left, width),
        };
        let changed = padded(x, padding);
        let (input, size) = match &changed {
            Some((buffer, size)) => (&**buffer, *size),
            None => (&*x.numbers, [height, width]),
        };
        let call = Call {
            winograd: self,
            input,
            size,
            columns,
            residual: residual.map(|residual| &*residual.numbers),
            activation,
        };
        call.share(&mut result.numbers, lines * columns * output, lines);
        Ok(result)
    }
}

// === impl Call ===

impl Call<'_> {
    /// Computes pictures of `len` numbers and `lines` lines, on the threads of the pool this runs in
    /// where there is enough to do.
    fn share(self, out: &mut [f32], len: usize, lines: usize) {
        let threads = match out.len() * self.winograd.shape.rows {
            ..SHARED_MIN => 1,
            _ => rayon::current_num_threads(),
        };
        let [down, across] = [lines, self.columns].map(|outputs| outputs.div_ceil(TILE));
        let fitting = (BLOCK_TILES / across.max(1)).clamp(1, down.max(1));
        // Every thread gets as many.
        let blocks = down.div_ceil(fitting).next_multiple_of(threads);
        let block = TILE * down.div_ceil(blocks.max(1));
        let numbers = (block * self.columns * self.winograd.shape.output).max(1);
        let compute = |picture: usize, i: usize, out: &mut [f32]| {
            let block = Block {
                call: self,
                picture,
                line: i * block,
                from: picture * len + i * numbers,
                out,
            };
            dispatch(block);
        };
        if threads > 1 {
            let pictures = out.par_chunks_mut(len.max(1)).enumerate();
            pictures.for_each(|(picture, out)| {
                let blocks = out.par_chunks_mut(numbers).enumerate();
                blocks.for_each(|(i, out)| compute(picture, i, out));
            });
        } else {
            for (picture, out) in out.chunks_mut(len.max(1)).enumerate() {
                for (i, out) in out.chunks_mut(numbers).enumerate() {
                    compute(picture, i, out);
                }
            }
        }
    }
}

// === impl Block ===

impl Vectorized for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let Call {
            winograd, columns, ..
        } = self.call;
        let Shape { input, output, .. } = winograd.shape;
        // Packed by the same dispatch: a process does not change its instructions.
        assert_eq!(winograd.lanes, S::LANES, "weights packed for other vectors");
        let down = (self.out.len() / (columns * output)).div_ceil(TILE);
        let tiles = columns.div_ceil(TILE);
        let across = (BLOCK_TILES / down).clamp(1, tiles);
        let planes = [input, output].map(|channels| down * across * channels);
        let mut inputs = Buffer::take(POINTS * planes[0]);
        let mut sums = Buffer::take(POINTS * planes[1]);
        let mut offsets = [0usize; BLOCK_MAX];
        for (i, offset) in offsets.iter_mut().enumerate() {
            *offset = i * input;
        }
        let panels = winograd.weights.len() / POINTS;
        let mut from = 0;
        while from < tiles {
            let span = Span {
                from,
                across: across.min(tiles - from),
                down,
            };
            let count = span.across * span.down;
            self.transform(simd, span, &mut inputs);
            for point in 0..POINTS {
                let mut product = Point {
                    simd,
                    weights: &winograd.weights[point * panels..][..panels],
                    inputs: &inputs[point * planes[0]..][..count * input],
                    shape: winograd.shape,
                    sums: &mut sums[point * planes[1]..][..count * output],
                };
                panels::compute(&mut product, output, &offsets[..count]);
            }
            self.transform_back(simd, span, &sums);
            from += across;
        }
        if self.call.activation == Activation::Silu {
            gates::silu(self.out);
        }
    }
}

impl Block<'_> {
    /// What tiles read, to `[point][tile][input channel]`.
    #[inline(always)]
    fn transform<S: Simd>(&self, simd: S, span: Span, to: &mut [f32]) {
        let Call { winograd, size, .. } = self.call;
        let channels = winograd.shape.input;
        let [height, width] = size;
        let (pitch, plane) = (width * channels, to.len() / POINTS);
        let picture = &self.call.input[self.picture * height * pitch..][..height * pitch];
        for y in 0..span.down {
            for x in 0..span.across {
                let corner = (self.line + TILE * y) * pitch + TILE * (span.from + x) * channels;
                let corner = &picture[corner..][..(READ - 1) * (pitch + channels) + channels];
                let to = &mut to[(y * span.across + x) * channels..];
                let mut channel = 0;
                while channel + S::LANES <= channels {
                    let (from, to) = (&corner[channel..], &mut to[channel..]);
                    read_tile(simd, from, [pitch, channels], to, plane, S::LANES);
                    channel += S::LANES;
                }
                if channel < channels {
                    let left = channels - channel;
                    let (from, to) = (&corner[channel..], &mut to[channel..]);
                    read_tile(simd, from, [pitch, channels], to, plane, left);
                }
            }
        }
    }

    /// Sums `[point][tile][output channel]` to outputs, with all that follows.
    #[inline(always)]
    fn transform_back<S: Simd>(&mut self, simd: S, span: Span, sums: &[f32]) {
        let Call {
            winograd, columns, ..
        } = self.call;
        let channels = winograd.shape.output;
        let plane = sums.len() / POINTS;
        for y in 0..span.down {
            for x in 0..span.across {
                let sums = &sums[(y * span.across + x) * channels..];
                let column = TILE * (span.from + x);
                let at = (TILE * y * columns + column) * channels;
                let corner = Corner {
                    at,
                    right: column + 1 < columns,
                    below: at + columns * channels < self.out.len(),
                };
                let mut channel = 0;
                while channel + S::LANES <= channels {
                    self.write(simd, &sums[channel..], plane, corner, channel, S::LANES);
                    channel += S::LANES;
                }
                if channel < channels {
                    let left = channels - channel;
                    self.write(simd, &sums[channel..], plane, corner, channel, left);
                }
            }
        }
    }

    /// Outputs of `len` channels from `channel` on, whose sums these are.
    #[inline(always)]
    fn write<S: Simd>(
        &mut self,
        simd: S,
        sums: &[f32],
        plane: usize,
        corner: Corner,
        channel: usize,
        len: usize,
    ) {
        let Call {
            winograd,
            columns,
            residual,
            activation,
            ..
        } = self.call;
        let channels = winograd.shape.output;
        let biases = simd.load(&winograd.biases[channel..][..S::LANES]);
        let tile = write_tile(simd, sums, plane, len, biases);
        let residual = match residual {
            Some(all) => Some(&all[self.from..][..self.out.len()]),
            None => None,
        };
        let at = corner.at + channel;
        let (act, out) = (activation, &mut *self.out);
        let (right, down) = (at + channels, columns * channels);
        finish_vector(simd, tile[0][0], residual, act, out, at, len);
        if corner.right {
            finish_vector(simd, tile[0][1], residual, act, out, right, len);
        }
        if corner.below {
            finish_vector(simd, tile[1][0], residual, act, out, at + down, len);
            if corner.right {
                finish_vector(simd, tile[1][1], residual, act, out, right + down, len);
            }
        }
    }
}

// === impl Point ===

impl<S: Simd> Tiles for Point<'_, S> {
    const LANES: usize = S::LANES;
    const REGISTERS: usize = S::REGISTERS;
    const STEPS: usize = 1;

    #[inline(always)]
    fn tile<const M: usize, const N: usize>(
        &mut self,
        panel: Panel,
        from: usize,
        offsets: &[usize],
    ) {
        let Shape { input, output, .. } = self.shape;
        let simd = self.simd;
        let weights = &self.weights[panel.from * input..][..N * S::LANES * input];
        let weights = simd.vectors(weights).as_chunks::<N>().0;
        let last = offsets.len() - 1;
        let inputs: [&[f32]; M] = array::from_fn(|m| &self.inputs[offsets[m.min(last)]..]);
        let runs = Runs {
            lines: 1,
            pitch: 0,
            run: input,
        };
        let zeros = [simd.splat(0.0); N];
        let sums = tile::multiply::<_, M, N>(Singles(simd), zeros, inputs, weights, runs);
        // By constants, once unrolled; see `tile::multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let at = (from + m) * output + panel.from;
            let out = &mut self.sums[at..][..panel.channels];
            tile::finish::<S, N>(simd, sums[m], None, Activation::None, out);
        }
    }
}

#[cfg(test)]
mod tests;
