//! A convolution over all channels, on packed weights.

use std::array;

use super::driver::{ConvBlock, ConvJob, ConvKernel, OutputCut};
use super::geometry::{BLOCK_MAX, Geometry};
use super::panels::{self, Panel, Tiles, WeightShape, panels};
use super::parts::{Part, Parts};
use super::tile::{self, Rest};
use crate::activation::Activation;
use crate::bf16;
use crate::error::KernelError;
use crate::memory::{Aligned, Buffer, FeatureView, Padded, Weights};
use crate::simd::products::{OnPairs, Products, Singles};
use crate::simd::vectors::{Simd, Vectorized};
use crate::simd::{dispatch, dispatch_pairs, lanes, pair_steps, registers};
use crate::window::Window2d;

/// Weights `[positions * input, output]` and biases, in panels.
///
/// A panel holds all weights of a few output channels in the order in which a tile reads them.
#[derive(Debug)]
pub(super) struct DenseKernel {
    /// `[panel][position][word of a position][channel of the panel]`, zeros behind the last
    /// channel.
    weights: Weights,
    /// `[panel][channel of the panel]`.
    biases: Aligned,
    words: Words,
    /// Words of an output channel.
    rows: usize,
    lanes: usize,
    /// Channels of a full panel.
    width: usize,
    shape: WeightShape,
}

/// Contents of a 32-bit word of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// One f32.
    F32,
    /// Two neighbouring channels of a position, rounded to [`bf16`].
    Bf16,
}

/// Words of padded images, and where the windows lie in them.
pub(super) struct DenseInput {
    images: DenseImages,
    geometry: Geometry,
}

enum DenseImages {
    F32(Padded),
    Bf16(Buffer),
}

/// The tiles of a block, and how their words are multiplied.
struct DenseTiles<'a, P> {
    products: P,
    kernel: &'a DenseKernel,
    input: &'a [f32],
    parts: Parts,
    part: Part,
    /// The part's tile that is computed next.
    tile: usize,
    /// The block's part of the residual.
    residual: Option<&'a [f32]>,
    activation: Activation,
    /// `[positions, output]`.
    out: &'a mut [f32],
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

    /// Writes one word of a position for each output channel; `row` gives the weights of an input
    /// channel, if there is one.
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

    /// Words of inputs that one word of weights is multiplied by.
    fn steps(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Bf16 => pair_steps(),
        }
    }
}

// === impl DenseKernel ===

impl DenseKernel {
    /// Packs `[rows + 1, output]`, the last row the bias, of a `shape` `[lines, input, output]`;
    /// `rows` is the positions of a window of `lines` lines times `input` channels.
    pub(super) fn new(weight: &[f32], shape: [usize; 3], words: Words) -> Self {
        Self::for_vectors(weight, shape, words, [lanes(), registers()])
    }

    fn for_vectors(weight: &[f32], shape: [usize; 3], words: Words, vectors: [usize; 2]) -> Self {
        let shape = WeightShape::of(weight.len(), shape);
        let WeightShape {
            rows,
            input,
            output,
            ..
        } = shape;
        let (rest, bias) = weight.split_at(rows * output);
        let each = words.of_position(input);
        let count = rows / input * each;
        let padded = panels::padded(output, vectors);
        let mut weights = Weights::zeros(count * padded);
        let mut biases = Aligned::zeros(padded);
        for panel in panels(output, vectors) {
            let width = panel.vectors * vectors[0];
            let Panel { from, channels, .. } = panel;
            // All panels before this one are full: they hold as many values as channels.
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
            width: vectors[0] * tile::vectors(vectors[1]),
            shape,
        }
    }

    fn parts(&self, geometry: &Geometry) -> Parts {
        Parts::new(geometry.runs, self.words.steps(), self.width)
    }
}

impl ConvKernel for DenseKernel {
    type Input = DenseInput;

    fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError> {
        self.shape.check(channels, window)
    }

    fn output(&self) -> usize {
        self.shape.output
    }

    fn products(&self) -> usize {
        self.rows
    }

    fn prepare(&self, x: FeatureView<'_>, window: Window2d, windows: [usize; 2]) -> DenseInput {
        let (images, [height, width]) = match self.words {
            Words::F32 => {
                let padded = Padded::new(x, window.padding);
                let size = padded.size;
                (DenseImages::F32(padded), size)
            }
            Words::Bf16 => {
                let (words, size) = bf16::rounded(x, window.padding, self.words.steps());
                (DenseImages::Bf16(words), size)
            }
        };
        let words = self.words.of_position(self.shape.input) * self.words.steps();
        DenseInput {
            images,
            geometry: Geometry::new([height, width, words], window, windows),
        }
    }

    fn cut(&self, job: &ConvJob<'_, Self>, len: usize, threads: usize) -> OutputCut {
        let geometry = &job.input.geometry;
        let parts = self.parts(geometry);
        geometry.cut(len, self.shape.output, threads, parts.per_line)
    }

    fn compute(block: ConvBlock<'_, Self>) {
        match block.job.kernel.words {
            Words::F32 => dispatch(block),
            Words::Bf16 => dispatch_pairs(block),
        }
    }
}

// === impl DenseInput ===

impl DenseInput {
    fn words<'a>(&'a self, x: FeatureView<'a>) -> &'a [f32] {
        match &self.images {
            DenseImages::F32(padded) => padded.values(x),
            DenseImages::Bf16(words) => words,
        }
    }
}

// === impl DenseTiles ===

impl Vectorized for ConvBlock<'_, DenseKernel> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        compute(self, Singles(simd));
    }
}

impl OnPairs for ConvBlock<'_, DenseKernel> {
    type Output = ();

    #[inline(always)]
    fn run<P: Products>(self, products: P) {
        compute(self, products);
    }
}

#[inline(always)]
fn compute<P: Products>(block: ConvBlock<'_, DenseKernel>, products: P) {
    let ConvBlock { job, from, out } = block;
    let kernel = job.kernel;
    let output = kernel.shape.output;
    // Packed for the same instructions: a process does not change them.
    assert_eq!(
        kernel.lanes,
        P::Simd::LANES,
        "weights packed for other vectors"
    );
    let mut offsets = [0usize; BLOCK_MAX];
    let offsets = &mut offsets[..out.len() / output];
    job.input.geometry.offsets(from / output, offsets);
    let parts = kernel.parts(&job.input.geometry);
    let mut tiles = DenseTiles {
        products,
        kernel,
        input: job.input.words(job.x),
        parts,
        part: parts.part(0),
        tile: 0,
        residual: match job.residual {
            Some(all) => Some(&all[from..][..out.len()]),
            None => None,
        },
        activation: job.activation,
        out,
    };
    panels::compute(&mut tiles, output, offsets);
}

impl<P: Products> Tiles for DenseTiles<'_, P> {
    const LANES: usize = P::Simd::LANES;
    const REGISTERS: usize = P::Simd::REGISTERS;
    const STEPS: usize = P::STEPS;

    #[inline(always)]
    fn parts(&self) -> usize {
        self.parts.count()
    }

    #[inline(always)]
    fn begin(&mut self, part: usize) {
        (self.part, self.tile) = (self.parts.part(part), 0);
    }

    #[inline(always)]
    fn tile<const M: usize, const N: usize>(
        &mut self,
        panel: Panel,
        from: usize,
        offsets: &[usize],
    ) {
        let simd = self.products.simd();
        let (kernel, input) = (self.kernel, self.input);
        let (rows, output) = (kernel.rows, kernel.shape.output);
        let Part {
            row,
            word,
            runs,
            is_first,
            is_last,
        } = self.part;
        let width = N * Self::LANES;
        let count = runs.lines * (runs.run / Self::STEPS);
        let (weights, behind) =
            kernel.weights[panel.from * rows + row * width..].split_at(count * width);
        // The first tiles fetch vectors of each row of the next part, or of the next panel's first one. The
        // others fetch their own, which are there.
        let shift = self.tile * tile::fetched(M, N);
        let ahead = match behind.get(shift.min(N) * Self::LANES..) {
            Some(ahead) if shift < N && ahead.len() >= weights.len() => &ahead[..weights.len()],
            _ => weights,
        };
        let [weights, ahead] = [weights, ahead].map(|rows| simd.vectors(rows).as_chunks::<N>().0);
        self.tile += 1;
        let biases = simd.vectors(&kernel.biases[panel.from..][..width]);
        let biases: [_; N] = match is_first {
            true => array::from_fn(|n| biases[n]),
            false => [simd.splat(0.0); N],
        };
        let last = offsets.len() - 1;
        let inputs: [&[f32]; M] = array::from_fn(|m| &input[offsets[m.min(last)] + word..]);
        let sums =
            tile::multiply::<P, M, N, true>(self.products, biases, inputs, weights, ahead, runs);
        // Indexed by constants once unrolled; see `tile::multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let at = (from + m) * output + panel.from;
            let residual = self.residual.filter(|_| is_last);
            let rest = Rest {
                resumes: !is_first,
                residual: residual.map(|all| &all[at..][..panel.channels]),
                activation: match is_last {
                    true => self.activation,
                    false => Activation::None,
                },
            };
            let out = &mut self.out[at..][..panel.channels];
            tile::finish::<P::Simd, N>(simd, sums[m], rest, out);
        }
    }
}

#[cfg(test)]
mod tests;
