//! Windows of three lines and stride 1: all lines of a few vectors, from the first to the last.
//!
//! The values of a line are one axis, on which the columns of a window lie `channels` apart. A
//! vector may span columns, so no lane is empty for any number of channels. The weights stay in
//! registers, and a value that is loaded is multiplied by the weights of all three lines.

use super::packed::DepthwiseLines;
use crate::convolution::tile;
use crate::simd::vectors::Simd;

/// Lines of a window.
const LINES: usize = 3;

/// Most values of a vector.
const LANES_MAX: usize = 16;

/// The part of a line that a vector loads; the other lanes are 0.
#[derive(Clone, Copy, Default)]
struct BorderLoad {
    /// The first value, and the lane for it.
    from: usize,
    lane: usize,
    count: usize,
}

/// Windows of three lines and `X` columns; `N` vectors at once, where all their windows are inside
/// the line.
#[inline(always)]
pub(super) fn compute<S: Simd, const X: usize, const N: usize>(
    simd: S,
    lines: &mut DepthwiseLines<'_>,
) {
    let channels = lines.kernel.channels;
    let len = lines.columns * channels;
    let left = lines.window.padding.left * channels;
    let right = left + lines.size[1] * channels;
    let mut from = 0;
    while from < len {
        let to = from + N * S::LANES;
        if from >= left && to <= len && to + (X - 1) * channels <= right {
            sweep::<S, X, N, true>(simd, lines, from);
            from = to;
        } else {
            sweep::<S, X, 1, false>(simd, lines, from);
            from += S::LANES;
        }
    }
}

/// All lines of `N` vectors, the first one at value `from` of a line. `INSIDE`: all their windows
/// are inside the line.
#[inline(always)]
fn sweep<S: Simd, const X: usize, const N: usize, const INSIDE: bool>(
    simd: S,
    lines: &mut DepthwiseLines<'_>,
    from: usize,
) {
    let kernel = lines.kernel;
    let channels = kernel.channels;
    let [height, width] = lines.size;
    let (top, left) = (
        lines.window.padding.top,
        lines.window.padding.left * channels,
    );
    let (pitch, len) = (width * channels, lines.columns * channels);
    let mut biases = [simd.splat(0.0); N];
    let mut weights = [[biases; X]; LINES];
    for n in 0..N {
        let channel = (from + n * S::LANES) % channels;
        biases[n] = simd.load(&kernel.row(LINES * X)[channel..][..S::LANES]);
        for (y, weights) in weights.iter_mut().enumerate() {
            for (x, weights) in weights.iter_mut().enumerate() {
                weights[n] = simd.load(&kernel.row(y * X + x)[channel..][..S::LANES]);
            }
        }
    }
    let mut border = [BorderLoad::default(); X];
    if !INSIDE {
        for (x, border) in border.iter_mut().enumerate() {
            *border = BorderLoad::new(from + x * channels, left, pitch, S::LANES);
        }
    }
    let count = lines.out.len() / len;
    let to = (from + N * S::LANES).min(len);
    // Sums that have the first line of their window, and the first two.
    let (mut one, mut two) = (biases, biases);
    for step in 0..count + LINES - 1 {
        let mut all = two;
        two = one;
        one = biases;
        // Counted with the padding.
        let line = lines.first + step;
        if line >= top && line < top + height {
            let line = &lines.image[(line - top) * pitch..][..pitch];
            for x in 0..X {
                for n in 0..N {
                    let value = if INSIDE {
                        let at = from - left + x * channels + n * S::LANES;
                        simd.load(&line[at..][..S::LANES])
                    } else {
                        border[x].load(simd, line)
                    };
                    all[n] = simd.mul_add(value, weights[2][x][n], all[n]);
                    two[n] = simd.mul_add(value, weights[1][x][n], two[n]);
                    one[n] = simd.mul_add(value, weights[0][x][n], one[n]);
                }
            }
        }
        if step >= LINES - 1 {
            let out = &mut lines.out[(step + 1 - LINES) * len..][from..to];
            tile::finish::<S, N>(simd, all, lines.activation.into(), out);
        }
    }
}

// === impl BorderLoad ===

impl BorderLoad {
    /// A vector at value `at`, counted with `left` values of padding in front of a line of `len`.
    #[inline(always)]
    fn new(at: usize, left: usize, len: usize, lanes: usize) -> Self {
        let lane = left.saturating_sub(at).min(lanes);
        let from = (at + lane).saturating_sub(left).min(len);
        let count = (lanes - lane).min(len - from);
        // Nothing is loaded into the first lane, which is a plain load.
        let lane = if count == 0 { 0 } else { lane };
        Self { from, lane, count }
    }

    #[inline(always)]
    fn load<S: Simd>(self, simd: S, line: &[f32]) -> S::Vector {
        let values = &line[self.from..][..self.count];
        if self.lane == 0 {
            simd.load(values)
        } else if self.lane + self.count == S::LANES {
            simd.load_last(values)
        } else {
            // A line shorter than a vector.
            let mut lanes = [0.0; LANES_MAX];
            lanes[self.lane..][..self.count].copy_from_slice(values);
            simd.load(&lanes[..S::LANES])
        }
    }
}
