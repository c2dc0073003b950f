//! Windows of any size and stride, column by column, several vectors of channels at once.
//!
//! Neighbouring columns of squares of stride 1 are computed together, one vector of channels after the other: a
//! value that is loaded is multiplied by the weights of all windows that contain it.

use std::ops::Range;

use super::packed::DepthwiseLines;
use crate::convolution::tile;
use crate::simd::vectors::Simd;

/// Vectors of channels of a single column whose sums are in registers at once.
const VECTORS: usize = 4;

/// Fewest columns that are computed several at once: with fewer, most windows reach over the image's border.
const COLUMNS_MIN: usize = 10;

/// The taps of a window that are inside the image, along one axis.
#[derive(Clone, Copy)]
struct Inside {
    /// First position of the image, and the first tap.
    position: usize,
    tap: usize,
    count: usize,
}

/// All lines.
#[inline(always)]
pub(super) fn compute<S: Simd>(simd: S, lines: &mut DepthwiseLines<'_>) {
    let is_wide = lines.kernel.channels >= S::LANES && lines.columns >= COLUMNS_MIN;
    match (lines.window.kernel, lines.window.stride[1]) {
        ([3, 3], 1) if is_wide => squares::<S, 3>(simd, lines),
        ([5, 5], 1) if is_wide => squares::<S, 5>(simd, lines),
        _ => of_columns(simd, lines, 0..lines.count(), 0..lines.columns),
    }
}

/// Windows of `X` lines and columns at every column; a vector of channels, at least.
#[inline(always)]
fn squares<S: Simd, const X: usize>(simd: S, lines: &mut DepthwiseLines<'_>) {
    let (left, width) = (lines.window.padding.left, lines.size[1]);
    let first = left.min(lines.columns);
    let end = (left + width + 1).saturating_sub(X);
    let end = end.clamp(first, lines.columns);
    // Line by line: the channels of one column are neighbours, those of two lines are not.
    for line in 0..lines.count() {
        of_columns(simd, lines, line..line + 1, 0..first);
        of_columns(simd, lines, line..line + 1, end..lines.columns);
    }
    let channels = lines.kernel.channels;
    let mut from = 0;
    while from < channels {
        // The last vector has some channels of the one before.
        let at = from.min(channels - S::LANES);
        let mut weights = [[simd.splat(0.0); X]; X];
        for (y, weights) in weights.iter_mut().enumerate() {
            for (x, weights) in weights.iter_mut().enumerate() {
                *weights = simd.load(&lines.kernel.row(y * X + x)[at..][..S::LANES]);
            }
        }
        for line in 0..lines.count() {
            let down = lines.inside(0, lines.first + line);
            let mut column = first;
            while column < end {
                let place = [line, column, at];
                match end - column {
                    8.. if S::REGISTERS >= 32 => {
                        across::<S, X, 8>(simd, lines, &weights, place, down);
                        column += 8;
                    }
                    4.. => {
                        across::<S, X, 4>(simd, lines, &weights, place, down);
                        column += 4;
                    }
                    2.. => {
                        across::<S, X, 2>(simd, lines, &weights, place, down);
                        column += 2;
                    }
                    _ => {
                        across::<S, X, 1>(simd, lines, &weights, place, down);
                        column += 1;
                    }
                }
            }
        }
        from += S::LANES;
    }
}

/// One vector of channels from `from` on, of `P` windows from `[line, column]` on, which are inside the line.
#[inline(always)]
fn across<S: Simd, const X: usize, const P: usize>(
    simd: S,
    lines: &mut DepthwiseLines<'_>,
    weights: &[[S::Vector; X]; X],
    [line, column, from]: [usize; 3],
    down: Inside,
) {
    let channels = lines.kernel.channels;
    let bias = simd.load(&lines.kernel.row(X * X)[from..][..S::LANES]);
    let mut sums = [bias; P];
    let position = column - lines.window.padding.left;
    for (y, weights) in weights[down.tap..][..down.count].iter().enumerate() {
        let at = ((down.position + y) * lines.size[1] + position) * channels;
        let mut positions = lines.image[at..].chunks_exact(channels);
        // Indexed by constants once unrolled, as in `tile::multiply`.
        #[allow(clippy::needless_range_loop)]
        for q in 0..P - 1 + X {
            let values = positions.next().unwrap_or_default();
            let value = simd.load(&values[from..][..S::LANES]);
            for p in 0..P {
                if p <= q && q < p + X {
                    sums[p] = simd.mul_add(value, weights[q - p], sums[p]);
                }
            }
        }
    }
    let at = (line * lines.columns + column) * channels;
    let mut positions = lines.out[at..].chunks_exact_mut(channels);
    for sum in sums {
        let out = &mut positions.next().unwrap_or_default()[from..][..S::LANES];
        tile::finish::<S, 1>(simd, [sum], lines.activation.into(), out);
    }
}

/// All channels of some lines and columns.
#[inline(always)]
fn of_columns<S: Simd>(
    simd: S,
    lines: &mut DepthwiseLines<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let channels = lines.kernel.channels;
    let mut from = 0;
    while channels - from >= VECTORS * S::LANES {
        some::<S, VECTORS>(simd, lines, from, [&rows, &columns]);
        from += VECTORS * S::LANES;
    }
    while from < channels {
        some::<S, 1>(simd, lines, from, [&rows, &columns]);
        from += S::LANES;
    }
}

/// `N` vectors of channels from `from` on, of some lines and columns.
#[inline(always)]
fn some<S: Simd, const N: usize>(
    simd: S,
    lines: &mut DepthwiseLines<'_>,
    from: usize,
    [rows, columns]: [&Range<usize>; 2],
) {
    for line in rows.clone() {
        let down = lines.inside(0, lines.first + line);
        for column in columns.clone() {
            let right = lines.inside(1, column);
            taps::<S, N>(simd, lines, from, [line, column], [down, right]);
        }
    }
}

/// `N` vectors of channels from `from` on, of the window at `[line, column]`; the last vector of the channels may be
/// partly filled.
#[inline(always)]
fn taps<S: Simd, const N: usize>(
    simd: S,
    lines: &mut DepthwiseLines<'_>,
    from: usize,
    [line, column]: [usize; 2],
    [down, right]: [Inside; 2],
) {
    let (kernel, window) = (lines.kernel, lines.window);
    let channels = kernel.channels;
    let to = (from + N * S::LANES).min(channels);
    let mut sums = load::<S, N>(simd, &kernel.row(window.positions())[from..]);
    for y in 0..down.count {
        let position = (down.position + y) * lines.size[1] + right.position;
        let tap = (down.tap + y) * window.kernel[1] + right.tap;
        for x in 0..right.count {
            let weights = load::<S, N>(simd, &kernel.row(tap + x)[from..]);
            let values = &lines.image[(position + x) * channels..][from..to];
            for n in 0..N {
                let end = ((n + 1) * S::LANES).min(values.len());
                let value = simd.load(&values[n * S::LANES..end]);
                sums[n] = simd.mul_add(value, weights[n], sums[n]);
            }
        }
    }
    let out = &mut lines.out[(line * lines.columns + column) * channels..][from..to];
    tile::finish::<S, N>(simd, sums, lines.activation.into(), out);
}

/// The first `N` vectors of `values`.
#[inline(always)]
fn load<S: Simd, const N: usize>(simd: S, values: &[f32]) -> [S::Vector; N] {
    let mut vectors = [simd.splat(0.0); N];
    for (n, vector) in vectors.iter_mut().enumerate() {
        *vector = simd.load(&values[n * S::LANES..][..S::LANES]);
    }
    vectors
}

// === impl DepthwiseLines ===

impl DepthwiseLines<'_> {
    /// Lines of the output.
    #[inline(always)]
    fn count(&self) -> usize {
        self.out.len() / (self.columns * self.kernel.channels)
    }

    /// The taps along `axis` of window `index`.
    #[inline(always)]
    fn inside(&self, axis: usize, index: usize) -> Inside {
        let (position, tap, count) = self.window.overlap(axis, index, self.size[axis]);
        Inside {
            position,
            tap,
            count,
        }
    }
}
