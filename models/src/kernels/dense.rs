//! A convolution over all channels, on packed weights.

use std::array;

use super::blocks::{BLOCK_MAX, Geometry};
use super::scratch::{Aligned, Buffer};
use super::simd::{Simd, Vectorized, dispatch, lanes, registers};
use super::tile;
use super::{Activation, Map, gates};
use crate::unfold2d::{Padding, Window2d};

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
pub(super) struct Panel {
    pub(super) from: usize,
    pub(super) channels: usize,
    pub(super) vectors: usize,
}

/// What one call reads and writes.
#[derive(Clone, Copy)]
struct Call<'a> {
    dense: &'a Dense,
    /// Padded pictures.
    input: &'a [f32],
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

// === impl Dense ===

impl Dense {
    /// Packs `[rows + 1, output]`, the last row the bias; `rows` is positions times `input`
    /// channels.
    pub(crate) fn new(weight: &[f32], input: usize, output: usize) -> Self {
        Self::for_vectors(weight, input, output, lanes(), registers())
    }

    fn for_vectors(
        weight: &[f32],
        input: usize,
        output: usize,
        lanes: usize,
        registers: usize,
    ) -> Self {
        let vectors = tile::vectors(registers);
        let rows = weight.len() / output - 1;
        let padded: usize = panels(output, lanes, vectors)
            .map(|p| p.vectors * lanes)
            .sum();
        let mut weights = Aligned::zeros(rows * padded);
        let mut biases = Aligned::zeros(padded);
        let (rest, bias) = weight.split_at(rows * output);
        for panel in panels(output, lanes, vectors) {
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
        let size = [padded_height, padded_width, channels];
        let call = Call {
            dense: self,
            input,
            geometry: Geometry::new(size, window, windows),
            residual: residual.map(|residual| &*residual.numbers),
            activation,
        };
        let out = &mut *result.numbers;
        let compute = |first, out: &mut [f32]| {
            dispatch(Block { call, first, out });
            if activation == Activation::Silu {
                gates::silu(out);
            }
        };
        call.geometry.share(out, self.output, self.rows, compute);
        Ok(result)
    }
}

/// The output channels in panels; only the last one may be narrower.
pub(super) fn panels(output: usize, lanes: usize, vectors: usize) -> impl Iterator<Item = Panel> {
    let width = vectors * lanes;
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

// === impl Block ===

impl Vectorized for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let dense = self.call.dense;
        // Packed by the same dispatch: a process does not change its instructions.
        assert_eq!(dense.lanes, S::LANES, "weights packed for other vectors");
        let count = self.out.len() / dense.output;
        let mut offsets = [0usize; BLOCK_MAX];
        let offsets = &mut offsets[..count];
        self.call.geometry.offsets(self.first, offsets);
        for panel in panels(dense.output, S::LANES, tile::vectors(S::REGISTERS)) {
            match panel.vectors {
                1 => self.panel::<S, 1>(simd, panel, offsets),
                2 => self.panel::<S, 2>(simd, panel, offsets),
                3 if tile::vectors(S::REGISTERS) > 2 => self.panel::<S, 3>(simd, panel, offsets),
                4 if tile::vectors(S::REGISTERS) > 2 => self.panel::<S, 4>(simd, panel, offsets),
                _ => unreachable!("panels have at most as many vectors"),
            }
        }
    }
}

impl Block<'_> {
    /// All positions of the block by the channels of one panel.
    #[inline(always)]
    fn panel<S: Simd, const N: usize>(&mut self, simd: S, panel: Panel, offsets: &[usize]) {
        let dense = self.call.dense;
        let width = N * S::LANES;
        let weights = &dense.weights[panel.from * dense.rows..][..dense.rows * width];
        let weights = simd.vectors(weights).as_chunks::<N>().0;
        // A constant, and so are the guards: no code is made for larger tiles.
        let most = tile::positions(S::REGISTERS, N);
        for tile in tile::tiles(offsets.len(), most) {
            let from = tile.start;
            let at = &offsets[tile];
            match at.len() {
                8 if most >= 8 => self.tile::<S, 8, N>(simd, panel, weights, from, at),
                7 if most >= 8 => self.tile::<S, 7, N>(simd, panel, weights, from, at),
                6 => self.tile::<S, 6, N>(simd, panel, weights, from, at),
                5 => self.tile::<S, 5, N>(simd, panel, weights, from, at),
                3 | 4 => self.tile::<S, 4, N>(simd, panel, weights, from, at),
                2 => self.tile::<S, 2, N>(simd, panel, weights, from, at),
                1 => self.tile::<S, 1, N>(simd, panel, weights, from, at),
                _ => unreachable!("tiles have at most as many positions"),
            }
        }
    }

    /// The positions of a tile, from `from` of the block on, by the channels of a panel. Where
    /// there are fewer than `M`, the last one is computed more than once and written once.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const N: usize>(
        &mut self,
        simd: S,
        panel: Panel,
        weights: &[[S::Vector; N]],
        from: usize,
        offsets: &[usize],
    ) {
        let Call {
            dense,
            input,
            geometry,
            residual,
            activation,
        } = self.call;
        let biases = simd.vectors(&dense.biases[panel.from..][..N * S::LANES]);
        let biases: [S::Vector; N] = array::from_fn(|n| biases[n]);
        let last = offsets.len() - 1;
        let inputs: [&[f32]; M] = array::from_fn(|m| &input[offsets[m.min(last)]..]);
        let sums = tile::multiply::<S, M, N>(simd, biases, inputs, weights, geometry.runs);
        // By constants, once unrolled; see `tile::multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let at = (from + m) * dense.output + panel.from;
            let residual =
                residual.map(|all| &all[self.first * dense.output + at..][..panel.channels]);
            let out = &mut self.out[at..][..panel.channels];
            tile::finish::<S, N>(simd, sums[m], residual, activation, out);
        }
    }
}

#[cfg(test)]
mod tests;
