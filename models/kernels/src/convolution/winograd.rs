//! A convolution of 3 x 3 windows with fewer products: Winograd's F(2 x 2, 3 x 3), as in Lavin and
//! Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv:1509.09308, section 4.1).
//!
//! A tile of 2 x 2 outputs reads 4 x 4 values of a channel. The tile is transformed, by additions
//! only, and multiplied by the channel's transformed weights point by point: 16 products instead of
//! 36. For each of the 16 points, all tiles of a block by all channels are one matrix product,
//! computed by [`tile`]; then the sums are transformed back. Weights take 16 values instead of 9.
//!
//! Results differ from those of the plain sum by a few roundings. NaN or infinity reaches all
//! outputs of the tiles that read it, also outputs whose windows do not contain it.

mod transforms;

use std::array;

use self::transforms::{POINTS, READ, TILE, of_weights, read_tile, write_tile};
use super::driver::{ConvBlock, ConvJob, ConvKernel, OutputCut};
use super::geometry::BLOCK_MAX;
use super::panels::{self, Panel, Tiles, WeightShape, panels};
use super::tile::{self, Rest, Runs, finish_vector};
use crate::activation::Activation;
use crate::error::KernelError;
use crate::memory::{Aligned, Buffer, FeatureView, Padded, Weights};
use crate::simd::products::Singles;
use crate::simd::vectors::{Simd, Vectorized};
use crate::simd::{dispatch, lanes, registers};
use crate::window::{Padding, Window2d};

/// Channels below which the transforms cost more than they save: with 16, a batch took longer.
const CHANNELS_MIN: usize = 32;

/// Weights above which they no longer stay in a cache from one block to the next; with that many
/// channels, an image has few blocks.
const WEIGHTS_MAX: usize = 256 * 256;

/// Approximate tiles of a block: their transforms, in and out, stay in a second-level cache.
const BLOCK_TILES: usize = 32;

/// Transformed weights and biases, in panels.
#[derive(Debug)]
pub(super) struct WinogradKernel {
    /// `[point][panel][input channel][channel of the panel]`, zeros behind the last channel.
    weights: Weights,
    /// `[panel][channel of the panel]`.
    biases: Aligned,
    lanes: usize,
    shape: WeightShape,
}

/// A block, some lines of outputs of one image, and where its tiles lie. The number of lines is
/// even, except at the image's end.
struct WinogradBlock<'a> {
    kernel: &'a WinogradKernel,
    /// The padded image.
    image: &'a [f32],
    /// Values of a line of the padded image.
    pitch: usize,
    /// First line of outputs.
    line: usize,
    /// Columns of outputs.
    columns: usize,
    /// The block's part of the residual.
    residual: Option<&'a [f32]>,
    activation: Activation,
    /// `[lines, columns, output]`.
    out: &'a mut [f32],
}

/// Tiles that are multiplied together: columns `from..from + across` of `down` lines of tiles.
#[derive(Clone, Copy)]
struct TileSpan {
    from: usize,
    across: usize,
    down: usize,
}

/// Offset of a tile's first output in a block, and whether it has outputs to the right and below.
#[derive(Clone, Copy)]
struct TileCorner {
    at: usize,
    right: bool,
    below: bool,
}

/// The matrix product of one point.
struct PointTiles<'a, S> {
    simd: S,
    /// `[panel][input channel][channel of the panel]`.
    weights: &'a [f32],
    /// `[tiles, input]`.
    inputs: &'a [f32],
    shape: WeightShape,
    /// `[tiles, output]`.
    sums: &'a mut [f32],
}

// === impl WinogradKernel ===

impl WinogradKernel {
    /// Whether this kernel computes such a convolution faster than
    /// [`DenseKernel`](super::dense::DenseKernel).
    pub(super) fn suits(window: Window2d, [input, output]: [usize; 2]) -> bool {
        window.kernel == [3, 3]
            && window.stride == [1, 1]
            && input.min(output) >= CHANNELS_MIN
            && input * output <= WEIGHTS_MAX
    }

    /// Transforms and packs `[9 * input + 1, output]`, the last row the bias.
    pub(super) fn new(weight: &[f32], [input, output]: [usize; 2]) -> Self {
        Self::for_vectors(weight, [input, output], [lanes(), registers()])
    }

    fn for_vectors(weight: &[f32], [input, output]: [usize; 2], vectors: [usize; 2]) -> Self {
        let shape = WeightShape::of(weight.len(), [3, input, output]);
        let (rest, bias) = weight.split_at(shape.rows * output);
        let padded = panels::padded(output, vectors);
        let mut weights = Weights::zeros(POINTS * input * padded);
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
                    for (point, value) in of_weights(window).into_iter().enumerate() {
                        let panel = (point * padded + from) * input;
                        weights[panel + row * width + channel] = value;
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
}

impl ConvKernel for WinogradKernel {
    /// Images that contain every tile completely.
    type Input = Padded;

    fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError> {
        if window.kernel != [3, 3] || window.stride != [1, 1] {
            return Err(KernelError::Shape(format!(
                "weights for 3 x 3 windows at every position meet {window:?}"
            )));
        }
        self.shape.check(channels, window)
    }

    fn output(&self) -> usize {
        self.shape.output
    }

    fn products(&self) -> usize {
        self.shape.rows
    }

    fn prepare(
        &self,
        x: FeatureView<'_>,
        window: Window2d,
        [lines, columns]: [usize; 2],
    ) -> Padded {
        let [_, height, width, _] = x.dims;
        let Padding { top, left, .. } = window.padding;
        // Tiles are complete, also if an odd line or column remains.
        let behind = |outputs: usize, before: usize, length: usize| {
            (outputs.next_multiple_of(TILE) + 2).saturating_sub(before + length)
        };
        let padding = Padding {
            top,
            left,
            bottom: behind(lines, top, height),
            right: behind(columns, left, width),
        };
        Padded::new(x, padding)
    }

    fn cut(&self, job: &ConvJob<'_, Self>, _: usize, threads: usize) -> OutputCut {
        let [lines, columns] = job.windows;
        let [down, across] = [lines, columns].map(|outputs| outputs.div_ceil(TILE));
        let fitting = (BLOCK_TILES / across.max(1)).clamp(1, down.max(1));
        // Every thread gets the same number of blocks.
        let blocks = down.div_ceil(fitting).next_multiple_of(threads);
        let line = columns * self.shape.output;
        OutputCut {
            group: lines * line,
            block: TILE * down.div_ceil(blocks.max(1)) * line,
        }
    }

    fn compute(block: ConvBlock<'_, Self>) {
        dispatch(block);
    }
}

// === impl WinogradBlock ===

impl Vectorized for ConvBlock<'_, WinogradKernel> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { job, from, out } = self;
        let [lines, columns] = job.windows;
        let [height, width] = job.input.size;
        let WeightShape { input, output, .. } = job.kernel.shape;
        let line = columns * output;
        let pitch = width * input;
        let image = &job.input.values(job.x)[from / (lines * line) * height * pitch..];
        let block = WinogradBlock {
            kernel: job.kernel,
            image: &image[..height * pitch],
            pitch,
            line: from % (lines * line) / line,
            columns,
            residual: match job.residual {
                Some(all) => Some(&all[from..][..out.len()]),
                None => None,
            },
            activation: job.activation,
            out,
        };
        block.compute(simd);
    }
}

impl WinogradBlock<'_> {
    #[inline(always)]
    fn compute<S: Simd>(mut self, simd: S) {
        let (kernel, columns) = (self.kernel, self.columns);
        let WeightShape { input, output, .. } = kernel.shape;
        // Packed for the same instructions: a process does not change them.
        assert_eq!(kernel.lanes, S::LANES, "weights packed for other vectors");
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
        let panels = kernel.weights.len() / POINTS;
        let mut from = 0;
        while from < tiles {
            let span = TileSpan {
                from,
                across: across.min(tiles - from),
                down,
            };
            let count = span.across * span.down;
            self.transform(simd, span, &mut inputs);
            for point in 0..POINTS {
                let mut product = PointTiles {
                    simd,
                    weights: &kernel.weights[point * panels..][..panels],
                    inputs: &inputs[point * planes[0]..][..count * input],
                    shape: kernel.shape,
                    sums: &mut sums[point * planes[1]..][..count * output],
                };
                panels::compute(&mut product, output, &offsets[..count]);
            }
            self.transform_back(simd, span, &sums);
            from += across;
        }
    }

    /// Transforms the inputs of tiles to `[point][tile][input channel]`.
    #[inline(always)]
    fn transform<S: Simd>(&self, simd: S, span: TileSpan, to: &mut [f32]) {
        let channels = self.kernel.shape.input;
        let (pitch, plane) = (self.pitch, to.len() / POINTS);
        for y in 0..span.down {
            for x in 0..span.across {
                let corner = (self.line + TILE * y) * pitch + TILE * (span.from + x) * channels;
                let corner = &self.image[corner..][..(READ - 1) * (pitch + channels) + channels];
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

    /// Transforms sums `[point][tile][output channel]` back to outputs; adds bias and residual,
    /// applies the activation.
    #[inline(always)]
    fn transform_back<S: Simd>(&mut self, simd: S, span: TileSpan, sums: &[f32]) {
        let (channels, columns) = (self.kernel.shape.output, self.columns);
        let plane = sums.len() / POINTS;
        for y in 0..span.down {
            for x in 0..span.across {
                let sums = &sums[(y * span.across + x) * channels..];
                let column = TILE * (span.from + x);
                let at = (TILE * y * columns + column) * channels;
                let corner = TileCorner {
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

    /// Writes outputs of `len` channels from `channel` on, given their sums.
    #[inline(always)]
    fn write<S: Simd>(
        &mut self,
        simd: S,
        sums: &[f32],
        plane: usize,
        corner: TileCorner,
        channel: usize,
        len: usize,
    ) {
        let (kernel, columns) = (self.kernel, self.columns);
        let rest = Rest {
            resumes: false,
            residual: self.residual,
            activation: self.activation,
        };
        let channels = kernel.shape.output;
        let biases = simd.load(&kernel.biases[channel..][..S::LANES]);
        let tile = write_tile(simd, sums, plane, len, biases);
        let at = corner.at + channel;
        let out = &mut *self.out;
        let (right, down) = (at + channels, columns * channels);
        finish_vector(simd, tile[0][0], rest, out, at, len);
        if corner.right {
            finish_vector(simd, tile[0][1], rest, out, right, len);
        }
        if corner.below {
            finish_vector(simd, tile[1][0], rest, out, at + down, len);
            if corner.right {
                finish_vector(simd, tile[1][1], rest, out, right + down, len);
            }
        }
    }
}

// === impl PointTiles ===

impl<S: Simd> Tiles for PointTiles<'_, S> {
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
        let WeightShape { input, output, .. } = self.shape;
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
        let sums =
            tile::multiply::<_, M, N, false>(Singles(simd), zeros, inputs, weights, weights, runs);
        // Indexed by constants once unrolled; see `tile::multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let at = (from + m) * output + panel.from;
            let out = &mut self.sums[at..][..panel.channels];
            tile::finish::<S, N>(simd, sums[m], Activation::None.into(), out);
        }
    }
}

#[cfg(test)]
mod tests;
