//! The innermost loop: sums of a few positions by a few vectors of output channels, in registers.

use std::ops::Range;

use crate::activation::Activation;
use crate::simd::products::{Products, VectorOf};
use crate::simd::vectors::Simd;

/// Vectors of output channels in a full panel of weights, of a machine with this many vector
/// registers.
pub(super) const fn vectors(registers: usize) -> usize {
    if registers >= 32 { 4 } else { 2 }
}

/// Most positions of a tile, given this many vectors of channels: their sums, the weights of one
/// row and one input fill the vector registers, and their addresses the address registers. Weights
/// of more than one step are held twice, as words and widened.
pub(super) const fn positions(registers: usize, vectors: usize, steps: usize) -> usize {
    match (registers, vectors, steps) {
        (32.., ..=3, _) | (_, ..=1, _) => 8,
        (..32, _, 2..) => 5,
        _ => 6,
    }
}

/// `0..count` in the fewest tiles of at most `most`, all of nearly the same size.
pub(super) fn tiles(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let tiles = count.div_ceil(most).max(1);
    (0..tiles).map(move |i| i * count / tiles..(i + 1) * count / tiles)
}

/// Memory that a window reads: `lines` runs of `run` words, each `pitch` after the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) lines: usize,
    pub(crate) pitch: usize,
    pub(crate) run: usize,
}

/// Vectors of a row that a tile of `positions` by `vectors` fetches ahead. One or two tiles of at most six
/// positions fetch a whole row, so that few positions find their weights in the cache as well.
pub(super) const fn fetched(positions: usize, vectors: usize) -> usize {
    match (positions, vectors) {
        (..=4, _) => vectors,
        (_, 4) => 2,
        _ => 1,
    }
}

/// For each position, the biases plus the products of its runs and the channels' weights.
///
/// `inputs` starts at each position's window. `weights` has one row for each word of a window, and so has `ahead`,
/// of which [`fetched`] vectors are fetched meanwhile if `FETCHES`.
#[inline(always)]
pub(crate) fn multiply<P: Products, const M: usize, const N: usize, const FETCHES: bool>(
    products: P,
    biases: [VectorOf<P>; N],
    inputs: [&[f32]; M],
    weights: &[[VectorOf<P>; N]],
    ahead: &[[VectorOf<P>; N]],
    runs: Runs,
) -> [[VectorOf<P>; N]; M] {
    // Indexed by constants only, once the loops are unrolled: otherwise the sums stay in memory.
    let mut sums = [biases; M];
    let rows = runs.run / P::STEPS;
    for line in 0..runs.lines {
        // Slices of one length, so that one comparison bounds all of them. A closure here is not
        // inlined when two callers share it: the lengths are then unknown, and everything takes 1.6
        // times as long.
        let weights = &weights[line * rows..][..rows];
        let ahead = &ahead[line * rows..][..rows];
        let mut words: [&[P::Input]; M] = [&[]; M];
        for m in 0..M {
            words[m] = &P::inputs(&inputs[m][line * runs.pitch..])[..rows];
        }
        // Zipped: an index into `ahead` is compared in every turn, and the sums are moved from register to register.
        for (k, (row, ahead)) in weights.iter().zip(ahead).enumerate() {
            if FETCHES {
                for vector in &ahead[..fetched(M, N)] {
                    products.simd().prefetch(vector);
                }
            }
            for step in 0..P::STEPS {
                let mut parts = *row;
                for part in &mut parts {
                    *part = products.part(*part, step);
                }
                for m in 0..M {
                    let input = products.splat(words[m][k], step);
                    for n in 0..N {
                        sums[m][n] = products.add_products(input, parts[n], sums[m][n]);
                    }
                }
            }
        }
    }
    sums
}

/// The operations of a layer on its sums, in this order; other activations than a ReLU follow later.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    /// Adds the sums of earlier parts, which are in the output.
    pub(super) resumes: bool,
    /// Is added; its values lie as those of the output.
    pub(super) residual: Option<&'a [f32]>,
    pub(super) activation: Activation,
}

// === impl Rest ===

impl From<Activation> for Rest<'_> {
    fn from(activation: Activation) -> Self {
        Self {
            resumes: false,
            residual: None,
            activation,
        }
    }
}

/// Computes the rest and writes `out`: the channels of one panel at one position.
#[inline(always)]
pub(super) fn finish<S: Simd, const N: usize>(
    simd: S,
    sums: [S::Vector; N],
    rest: Rest<'_>,
    out: &mut [f32],
) {
    let (lanes, count) = (S::LANES, out.len());
    if count == N * lanes {
        // Of known lengths: no code for parts of vectors.
        for (n, sum) in sums.into_iter().enumerate() {
            finish_vector(simd, sum, rest, out, n * lanes, lanes);
        }
    } else {
        for (n, sum) in sums.into_iter().enumerate() {
            let from = (n * lanes).min(count);
            let len = lanes.min(count - from);
            finish_vector(simd, sum, rest, out, from, len);
        }
    }
}

/// The same for one vector, written to `out[from..from + len]`. Not a closure: closures are
/// compiled without the instruction set.
#[inline(always)]
pub(super) fn finish_vector<S: Simd>(
    simd: S,
    mut sum: S::Vector,
    rest: Rest<'_>,
    out: &mut [f32],
    from: usize,
    len: usize,
) {
    if rest.resumes {
        sum = simd.add(sum, simd.load(&out[from..][..len]));
    }
    if let Some(residual) = rest.residual {
        sum = simd.add(sum, simd.load(&residual[from..][..len]));
    }
    if rest.activation == Activation::Relu {
        // In this order NaN stays NaN.
        sum = simd.max(simd.splat(0.0), sum);
    }
    simd.store(&mut out[from..][..len], sum);
}
