//! A convolution over all channels, on packed weights.

use std::array;

use rayon::prelude::*;

use super::scratch::{Aligned, Buffer};
use super::simd::{Simd, Vectorized, dispatch, lanes};
use super::tile::{self, POSITIONS_16, POSITIONS_32, Runs, VECTORS};
use super::{Activation, Map, gates};
use crate::unfold2d::{Padding, Window2d};

/// Input numbers that a block of positions reads, about: half of a second-level cache, beside a
/// panel of weights.
const BLOCK_NUMBERS: usize = 48 * 1024;

/// Positions in one block at most; their offsets are kept on the stack.
const BLOCK_MAX: usize = 384;

/// Multiply-adds below which a convolution is not shared among threads: waking one takes as long.
const SHARED_MIN: usize = 1 << 20;

/// Weights `[positions * input, output]` and biases, in panels.
///
/// A panel holds all weights of a few output channels in the order in which a tile reads them.
#[derive(Debug)]
pub(crate) struct Dense {
    /// `[panel][row][channel of the panel]`, zeros behind the last channel.
    weights: Aligned,
    /// `[panel][channel of the panel]`.
    biases: Aligned,
    lanes: usize,
    rows: usize,
    input: usize,
    output: usize,
}

/// Channels `from..from + channels` of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Panel {
    from: usize,
    channels: usize,
    vectors: usize,
}

/// What one call reads and writes.
#[derive(Clone, Copy)]
struct Call<'a> {
    dense: &'a Dense,
    /// Padded pictures.
    input: &'a [f32],
    /// Numbers from one picture, line and column of windows to the next.
    steps: [usize; 3],
    /// Lines and columns of windows over a picture.
    windows: [usize; 2],
    runs: Runs,
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

// === impl Dense ===

impl Dense {
    /// Packs `[rows + 1, output]`, the last row the bias; `rows` is positions times `input`
    /// channels.
    pub(crate) fn new(weight: &[f32], input: usize, output: usize) -> Self {
        Self::with_lanes(weight, input, output, lanes())
    }

    fn with_lanes(weight: &[f32], input: usize, output: usize, lanes: usize) -> Self {
        let rows = weight.len() / output - 1;
        let padded: usize = panels(output, lanes).map(|p| p.vectors * lanes).sum();
        let mut weights = Aligned::zeros(rows * padded);
        let mut biases = Aligned::zeros(padded);
        let (rest, bias) = weight.split_at(rows * output);
        for panel in panels(output, lanes) {
            let width = panel.vectors * lanes;
            let Panel { from, channels, .. } = panel;
            // All panels before this one are full: they hold as many numbers as channels.
            let packed = &mut weights[from * rows..][..rows * width];
            for (to, row) in packed
                .chunks_exact_mut(width)
                .zip(rest.chunks_exact(output))
            {
                to[..channels].copy_from_slice(&row[from..][..channels]);
            }
            biases[from..][..channels].copy_from_slice(&bias[from..][..channels]);
        }
        Self {
            weights,
            biases,
            lanes,
            rows,
            input,
            output,
        }
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
        let [pictures, height, width, channels] = x.dims();
        if (channels, self.rows) != (self.input, window.positions() * self.input) {
            candle_core::bail!(
                "weights for {} channels and {} rows meet {channels} channels and {window:?}",
                self.input,
                self.rows
            );
        }
        let windows = window.output(height, width)?;
        let mut result = Map::new([pictures, windows[0], windows[1], self.output]);
        if residual.is_some_and(|residual| residual.dims() != result.dims()) {
            candle_core::bail!("a residual of another shape than {:?}", result.dims());
        }
        let padded = padded(x, window.padding);
        let (input, [padded_height, padded_width]) = match &padded {
            Some((buffer, size)) => (&**buffer, *size),
            None => (&*x.numbers, [height, width]),
        };
        let pitch = padded_width * channels;
        let call = Call {
            dense: self,
            input,
            steps: [
                padded_height * pitch,
                window.stride[0] * pitch,
                window.stride[1] * channels,
            ],
            windows,
            runs: Runs {
                lines: window.kernel[0],
                pitch,
                run: window.kernel[1] * channels,
            },
            residual: residual.map(|residual| &*residual.numbers),
            activation,
        };
        call.run(&mut result.numbers, pictures * windows[0] * windows[1]);
        Ok(result)
    }
}

/// The output channels in panels; only the last one may be narrower.
fn panels(output: usize, lanes: usize) -> impl Iterator<Item = Panel> {
    let width = VECTORS * lanes;
    (0..output).step_by(width).map(move |from| {
        let channels = width.min(output - from);
        let vectors = channels.div_ceil(lanes);
        Panel {
            from,
            channels,
            vectors,
        }
    })
}

/// Pictures with zeros around them, and their lines and columns; `None` where there are none to
/// add.
pub(super) fn padded(x: &Map, padding: Padding) -> Option<(Buffer, [usize; 2])> {
    if padding == Padding::default() {
        return None;
    }
    let [pictures, height, width, channels] = x.dims();
    let size = [
        padding.top + height + padding.bottom,
        padding.left + width + padding.right,
    ];
    let line = size[1] * channels;
    let mut buffer = Buffer::take(pictures * size[0] * line);
    let (left, inside) = (padding.left * channels, width * channels);
    for (to, from) in buffer
        .chunks_exact_mut((size[0] * line).max(1))
        .zip(x.numbers.chunks_exact(x.picture_len().max(1)))
    {
        let (top, rest) = to.split_at_mut(padding.top * line);
        let (middle, bottom) = rest.split_at_mut(height * line);
        top.fill(0.0);
        bottom.fill(0.0);
        for (to, from) in middle
            .chunks_exact_mut(line)
            .zip(from.chunks_exact(inside.max(1)))
        {
            to[..left].fill(0.0);
            to[left..left + inside].copy_from_slice(from);
            to[left + inside..].fill(0.0);
        }
    }
    Some((buffer, size))
}

// === impl Call ===

impl Call<'_> {
    /// Computes `positions` rows of `out`, shared among the threads of the pool it runs in.
    fn run(self, out: &mut [f32], positions: usize) {
        let threads = match positions * self.dense.rows * self.dense.output {
            ..SHARED_MIN => 1,
            _ => rayon::current_num_threads(),
        };
        let block = self.block(positions, threads);
        let numbers = (block * self.dense.output).max(1);
        let run = |(i, out): (usize, &mut [f32])| {
            let first = i * block;
            dispatch(Block {
                call: self,
                first,
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

    /// Positions of a block: their input fits the cache, every thread gets one, and none is left
    /// with a few for which all weights are read again.
    fn block(&self, positions: usize, threads: usize) -> usize {
        // Windows of neighbouring lines share what they read.
        let each = self.steps[1].max(1) / self.windows[1].max(1) + 1;
        let fitting = (BLOCK_NUMBERS / each).clamp(2 * POSITIONS_32, BLOCK_MAX);
        let blocks = positions.div_ceil(fitting).next_multiple_of(threads);
        // Whole tiles of either size.
        let tile = POSITIONS_16 * POSITIONS_32 / 2;
        let even = positions.div_ceil(blocks.max(1));
        match even {
            0..64 => even.max(1),
            _ => even.next_multiple_of(tile).min(BLOCK_MAX),
        }
    }

    /// Where the window of a position starts in the input.
    fn offset(&self, position: usize) -> usize {
        let [lines, columns] = self.windows;
        let (line, column) = (position / columns, position % columns);
        let (picture, line) = (line / lines, line % lines);
        picture * self.steps[0] + line * self.steps[1] + column * self.steps[2]
    }
}

// === impl Block ===

impl Vectorized for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if S::REGISTERS >= 32 {
            self.compute::<S, POSITIONS_32>(simd);
        } else {
            self.compute::<S, POSITIONS_16>(simd);
        }
    }
}

impl Block<'_> {
    #[inline(always)]
    fn compute<S: Simd, const M: usize>(mut self, simd: S) {
        let dense = self.call.dense;
        // Packed by the same dispatch: a process does not change its instructions.
        assert_eq!(dense.lanes, S::LANES, "weights packed for other vectors");
        let count = self.out.len() / dense.output;
        let mut offsets = [0usize; BLOCK_MAX];
        for (i, offset) in offsets[..count].iter_mut().enumerate() {
            *offset = self.call.offset(self.first + i);
        }
        for panel in panels(dense.output, S::LANES) {
            match panel.vectors {
                VECTORS => self.panel::<S, M, VECTORS>(simd, panel, &offsets[..count]),
                _ => self.panel::<S, M, 1>(simd, panel, &offsets[..count]),
            }
        }
    }

    /// All positions of the block by the channels of one panel.
    #[inline(always)]
    fn panel<S: Simd, const M: usize, const N: usize>(
        &mut self,
        simd: S,
        panel: Panel,
        offsets: &[usize],
    ) {
        let Call {
            dense,
            input,
            runs,
            residual,
            activation,
            ..
        } = self.call;
        let width = N * S::LANES;
        let weights = &dense.weights[panel.from * dense.rows..][..dense.rows * width];
        let weights = simd.vectors(weights).as_chunks::<N>().0;
        let biases = simd.vectors(&dense.biases[panel.from..][..width]);
        let biases: [S::Vector; N] = array::from_fn(|n| biases[n]);
        for tile in (0..offsets.len()).step_by(M) {
            // The last tile computes its last position more than once and writes it once.
            let last = offsets.len() - 1;
            let inputs: [&[f32]; M] = array::from_fn(|m| &input[offsets[(tile + m).min(last)]..]);
            let sums = tile::multiply::<S, M, N>(simd, biases, inputs, weights, runs);
            // By constants, once unrolled; see `tile::multiply`.
            #[allow(clippy::needless_range_loop)]
            for m in 0..M {
                let position = tile + m;
                if position > last {
                    continue;
                }
                let at = position * dense.output + panel.from;
                let residual =
                    residual.map(|all| &all[self.first * dense.output + at..][..panel.channels]);
                let out = &mut self.out[at..][..panel.channels];
                tile::finish::<S, N>(simd, sums[m], residual, activation, out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
