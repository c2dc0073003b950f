//! Tiles of a few queries by a few vectors of keys, or of values, with their sums in registers.

use std::array;

use crate::convolution::panels::{Panel, Tiles};
use crate::convolution::tile::{Runs, multiply};
use crate::functions::exp;
use crate::simd::products::Singles;
use crate::simd::vectors::Simd;

/// The most lanes of a vector.
const LANES_MAX: usize = 16;

/// Scores of some queries.
pub(super) struct ScoreTiles<'a, S> {
    pub(super) simd: S,
    /// `[queries, depth]`.
    pub(super) queries: &'a [f32],
    /// `[panel of keys][depth][key of the panel]`.
    pub(super) keys: &'a [f32],
    pub(super) depth: usize,
    /// Keys, rounded up to whole vectors.
    pub(super) wide: usize,
    /// `[queries, wide]`.
    pub(super) scores: &'a mut [f32],
}

/// Sums of values, weighted by the shares of some queries.
pub(super) struct MixTiles<'a, S> {
    pub(super) simd: S,
    /// Rows of one share per token.
    pub(super) shares: &'a [f32],
    /// `[panel of values][token][value of the panel]`.
    pub(super) values: &'a [f32],
    pub(super) tokens: usize,
    /// By query: its sums are multiplied by it.
    pub(super) inverses: &'a [f32],
    /// Results of a query, all heads together.
    pub(super) width: usize,
    /// From the first result of the head on.
    pub(super) out: &'a mut [f32],
}

// === impl ScoreTiles ===

impl<S: Simd> Tiles for ScoreTiles<'_, S> {
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
        let (simd, depth) = (self.simd, self.depth);
        let keys = &self.keys[panel.from * depth..][..N * S::LANES * depth];
        let keys = simd.vectors(keys).as_chunks::<N>().0;
        let last = offsets.len() - 1;
        let inputs: [&[f32]; M] = array::from_fn(|m| &self.queries[offsets[m.min(last)]..]);
        let zeros = [simd.splat(0.0); N];
        let sums =
            multiply::<_, M, N, false>(Singles(simd), zeros, inputs, keys, keys, one_run(depth));
        // Indexed by constants once unrolled; see `multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let row = &mut self.scores[(from + m) * self.wide + panel.from..][..N * S::LANES];
            for n in 0..N {
                simd.store(&mut row[n * S::LANES..][..S::LANES], sums[m][n]);
            }
        }
    }
}

// === impl MixTiles ===

impl<S: Simd> Tiles for MixTiles<'_, S> {
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
        let (simd, tokens) = (self.simd, self.tokens);
        let values = &self.values[panel.from * tokens..][..N * S::LANES * tokens];
        let values = simd.vectors(values).as_chunks::<N>().0;
        let last = offsets.len() - 1;
        let inputs: [&[f32]; M] = array::from_fn(|m| &self.shares[offsets[m.min(last)]..]);
        let zeros = [simd.splat(0.0); N];
        let sums = multiply::<_, M, N, false>(
            Singles(simd),
            zeros,
            inputs,
            values,
            values,
            one_run(tokens),
        );
        // Indexed by constants once unrolled; see `multiply`.
        #[allow(clippy::needless_range_loop)]
        for m in 0..M {
            if m > last {
                continue;
            }
            let inverse = simd.splat(self.inverses[from + m]);
            let row = &mut self.out[(from + m) * self.width + panel.from..][..panel.channels];
            for n in 0..N {
                let at = (n * S::LANES).min(row.len());
                let len = S::LANES.min(row.len() - at);
                simd.store(&mut row[at..][..len], simd.mul(sums[m][n], inverse));
            }
        }
    }
}

fn one_run(run: usize) -> Runs {
    Runs {
        lines: 1,
        pitch: 0,
        run,
    }
}

/// Makes `exp(score - largest)` of a row of scores, `tokens` rounded up to whole vectors. Returns
/// their sum.
#[inline(always)]
pub(super) fn soften<S: Simd>(simd: S, row: &mut [f32], tokens: usize) -> f32 {
    // The least share there is, some 1e-38: the largest one is 1.
    row[tokens..].fill(f32::NEG_INFINITY);
    let mut largest = simd.splat(f32::MIN);
    for part in row.chunks_exact(S::LANES) {
        // In this order the largest of the others counts next to NaN.
        largest = simd.max(simd.load(part), largest);
    }
    let largest = lanes(simd, largest).into_iter().fold(f32::MIN, f32::max);
    let (largest, mut sum) = (simd.splat(largest), simd.splat(0.0));
    for part in row.chunks_exact_mut(S::LANES) {
        let share = exp(simd, simd.sub(simd.load(part), largest));
        simd.store(part, share);
        sum = simd.add(sum, share);
    }
    lanes(simd, sum)[..S::LANES].iter().sum()
}

/// The lanes of a vector, and the least f32 behind them.
#[inline(always)]
fn lanes<S: Simd>(simd: S, vector: S::Vector) -> [f32; LANES_MAX] {
    let mut lanes = [f32::MIN; LANES_MAX];
    simd.store(&mut lanes[..S::LANES], vector);
    lanes
}
