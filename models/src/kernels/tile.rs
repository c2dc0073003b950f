//! The innermost loop: sums of a few positions by a few vectors of output channels, in registers.

use std::array;

use super::Activation;
use super::simd::Simd;

/// Vectors of output channels in a full panel of weights.
pub(super) const VECTORS: usize = 2;

/// Positions of a tile where there are 16 vector registers: 12 sums, two weights and one input.
pub(super) const POSITIONS_16: usize = 6;

/// Positions of a tile where there are 32. 16 sums are as many as two multipliers of latency 4
/// need, and more would not fit the addresses of their inputs into registers.
pub(super) const POSITIONS_32: usize = 8;

/// What a window reads: `lines` runs of `run` numbers, each `pitch` after the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    pub(super) lines: usize,
    pub(super) pitch: usize,
    pub(super) run: usize,
}

/// For each position, the biases plus the products of its runs and the channels' weights.
///
/// `inputs` starts where each position's window does. `weights` has one row for each number of a
/// window.
#[inline(always)]
pub(super) fn multiply<S: Simd, const M: usize, const N: usize>(
    simd: S,
    biases: [S::Vector; N],
    inputs: [&[f32]; M],
    weights: &[[S::Vector; N]],
    runs: Runs,
) -> [[S::Vector; N]; M] {
    // Indexed by constants only, once the loops are unrolled: otherwise they were kept in memory.
    let mut sums = [biases; M];
    let run = runs.run;
    for line in 0..runs.lines {
        // Slices of one length, so that one comparison bounds all of them.
        let weights = &weights[line * run..][..run];
        let inputs: [&[f32]; M] = array::from_fn(|m| &inputs[m][line * runs.pitch..][..run]);
        for k in 0..run {
            for m in 0..M {
                let input = simd.splat(inputs[m][k]);
                for n in 0..N {
                    sums[m][n] = simd.mul_add(input, weights[k][n], sums[m][n]);
                }
            }
        }
    }
    sums
}

/// Adds the residual, applies a ReLU, and writes `out`, one position's channels of one panel.
#[inline(always)]
pub(super) fn finish<S: Simd, const N: usize>(
    simd: S,
    sums: [S::Vector; N],
    residual: Option<&[f32]>,
    activation: Activation,
    out: &mut [f32],
) {
    let lanes = S::LANES;
    for (n, mut sum) in sums.into_iter().enumerate() {
        let (from, to) = ((n * lanes).min(out.len()), ((n + 1) * lanes).min(out.len()));
        if let Some(residual) = residual {
            sum = simd.add(sum, simd.load(&residual[from..to]));
        }
        if activation == Activation::Relu {
            sum = simd.max(sum, simd.splat(0.0));
        }
        simd.store(&mut out[from..to], sum);
    }
}
