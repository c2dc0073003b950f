//! A convolution over all channels, on packed weights.

use std::array;

use super::blocks::{BLOCK_MAX, Geometry};
use super::panels::{self, Panel, Shape, Tiles, panels};
use super::products::{self, OnPairs, Products, Singles};
use super::scratch::{Aligned, Buffer};
use super::simd::{Simd, Vectorized, dispatch, lanes, registers};
use super::tile;
use super::{Activation, Map, bf16, gates};
use crate::unfold2d::{Padding, Window2d};

/// Weights `[positions * input, output]` and biases, in panels.
///
/// A panel holds all weights of a few output channels in the order in which a tile reads them.
#[derive(Debug)]
pub(crate) struct Dense {
    /// `[panel][position][word of a position][channel of the panel]`, zeros behind the last
    /// channel.
    weights: Aligned,
    /// `[panel][channel of the panel]`.
    biases: Aligned,
    words: Words,
    /// Words of an output channel.
    rows: usize,
    lanes: usize,
    shape: Shape,
}

/// What a word of 32 bits of weights is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// A number.
    F32,
    /// Two neighbouring channels of a position, rounded to [`bf16`].
    Bf16,
}

/// What one call reads and writes.
#[derive(Clone, Copy)]
struct Call<'a> {
    dense: &'a Dense,
    /// Words of padded pictures.
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

/// A block, and how its words are multiplied.
struct With<'a, P> {
    products: P,
    block: Block<'a>,
}

// === impl Words ===

impl Words {
    /// Words of a position with this many channels.
    fn of_position(self, channels: usize) -> usize {
        match self {
            Self::F32 => channels,
            Self::Bf16 => bf16::words(channels),
        }
    }

    /// Writes a word of a position for each output channel; `row` has the weights of an input
    /// channel, where there is one.
    fn pack<'a>(self, word: usize, row: impl Fn(usize) -> Option<&'a [f32]>, to: &mut [f32]) {
        match self {
            Self::F32 => to.copy_from_slice(row(word).unwrap_or_default()),
            Self::Bf16 => {
                let [first, second] = [0, 1].map(|i| row(bf16::PAIR * word + i));
                for (i, to) in to.iter_mut().enumerate() {
                    let [first, second] = [first, second].map(|row| row.map_or(0.0, |row| row[i]));
                    *to = bf16::pair(first, second);
                }
            }
        }
    }

    /// Words of inputs that such a word is multiplied by.
    fn steps(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Bf16 => products::steps(),
        }
    }
}

// === impl Dense ===

impl Dense {
    /// Packs `[rows + 1, output]`, the last row the bias, of a `shape` `[lines, input, output]`;
    /// `rows` is the positions of a window of `lines` lines times `input` channels.
    pub(crate) fn new(weight: &[f32], shape: [usize; 3], words: Words) -> Self {
        Self::for_vectors(weight, shape, words, [lanes(), registers()])
    }

    fn for_vectors(weight: &[f32], shape: [usize; 3], words: Words, vectors: [usize; 2]) -> Self {
        let shape = Shape::of(weight.len(), shape);
        let Shape {
            rows,
            input,
            output,
            ..
        } = shape;
        let (rest, bias) = weight.split_at(rows * output);
        let each = words.of_position(input);
        let count = rows / input * each;
        let padded = panels::padded(output, vectors);
        let mut weights = Aligned::zeros(count * padded);
        let mut biases = Aligned::zeros(padded);
        for panel in panels(output, vectors) {
            let width = panel.vectors * vectors[0];
            let Panel { from, channels, .. } = panel;
            // All panels before this one are full: they hold as many numbers as channels.
            let packed = &mut weights[from * count..][..count * width];
            for (i, to) in packed.chunks_exact_mut(width).enumerate() {
                let (position, word) = (i / each, i % each);
                let row = |channel: usize| {
                    let row = (position * input + channel) * output;
                    (channel < input).then(|| &rest[row + from..][..channels])
                };
                words.pack(word, row, &mut to[..channels]);
            }
            biases[from..][..channels].copy_from_slice(&bias[from..][..channels]);
        }
        Self {
            weights,
            biases,
            words,
            rows: count,
            lanes: vectors[0],
            shape,
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
        let mut result = self.shape.result(x, window, residual)?;
        let [_, height, width, channels] = x.dims();
        let changed = match self.words {
            Words::F32 => padded(x, window.padding),
            Words::Bf16 => Some(bf16::rounded(x, window.padding, self.words.steps())),
        };
        let (input, [height, width]) = match &changed {
            Some((buffer, size)) => (&**buffer, *size),
            None => (&*x.numbers, [height, width]),
        };
        let words = self.words.of_position(channels) * self.words.steps();
        let [_, lines, columns, _] = result.dims();
        let call = Call {
            dense: self,
            input,
            geometry: Geometry::new([height, width, words], window, [lines, columns]),
            residual: residual.map(|residual| &*residual.numbers),
            activation,
        };
        let out = &mut *result.numbers;
        let compute = |first, out: &mut [f32]| {
            let block = Block { call, first, out };
            match self.words {
                Words::F32 => dispatch(block),
                Words::Bf16 => products::dispatch(block),
            }
            if activation == Activation::Silu {
                gates::silu(out);
            }
        };
        call.geometry
            .share(out, self.shape.output, self.rows, compute);
        Ok(result)
    }
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
    fn run<S: Simd>(self, simd: S) {
        self.with(Singles(simd));
    }
}

impl OnPairs for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<P: Products>(self, products: P) {
        self.with(products);
    }
}

impl Block<'_> {
    #[inline(always)]
    fn with<P: Products>(self, products: P) {
        let dense = self.call.dense;
        let output = dense.shape.output;
        // Packed by the same dispatch: a process does not change its instructions.
        assert_eq!(
            dense.lanes,
            P::Simd::LANES,
            "weights packed for other vectors"
        );
        let mut offsets = [0usize; BLOCK_MAX];
        let offsets = &mut offsets[..self.out.len() / output];
        self.call.geometry.offsets(self.first, offsets);
        let block = self;
        panels::compute(&mut With { products, block }, output, offsets);
    }
}

impl<P: Products> Tiles for With<'_, P> {
    const LANES: usize = P::Simd::LANES;
    const REGISTERS: usize = P::Simd::REGISTERS;
    const STEPS: usize = P::STEPS;

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
        let simd = self.products.simd();
        let (rows, output) = (dense.rows, dense.shape.output);
        let weights = &dense.weights[panel.from * rows..][..N * Self::LANES * rows];
        let weights = simd.vectors(weights).as_chunks::<N>().0;
        let biases = simd.vectors(&dense.biases[panel.from..][..N * Self::LANES]);
        let biases: [_; N] = array::from_fn(|n| biases[n]);
        let last = offsets.len() - 1;
        let inputs: [&[f32]; M] = array::from_fn(|m| &input[offsets[m.min(last)]..]);
        let sums = tile::multiply::<P, M, N>(self.products, biases, inputs, weights, geometry.runs);
        // By constants, once unrolled; see `tile::multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let at = (from + m) * output + panel.from;
            let residual =
                residual.map(|all| &all[self.block.first * output + at..][..panel.channels]);
            let out = &mut self.block.out[at..][..panel.channels];
            tile::finish::<P::Simd, N>(simd, sums[m], residual, activation, out);
        }
    }
}

#[cfg(test)]
mod tests;
