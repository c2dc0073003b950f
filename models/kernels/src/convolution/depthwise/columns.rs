//! Windows of any size and stride, column by column; the last vector of the channels may be partly
//! filled.

use super::packed::DepthwiseLines;
use crate::convolution::tile;
use crate::simd::vectors::Simd;

/// Vectors of channels whose sums are in registers at once.
const VECTORS: usize = 4;

/// Lines and columns of the window whose weights are kept in registers.
const SIDE: usize = 3;

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
    let channels = lines.kernel.channels;
    let mut from = 0;
    while from < channels {
        let vectors = (channels - from).div_ceil(S::LANES);
        if lines.window.kernel == [SIDE; 2] {
            square(simd, lines, from);
            from += S::LANES;
        } else if vectors >= VECTORS {
            any::<S, VECTORS>(simd, lines, from);
            from += VECTORS * S::LANES;
        } else {
            any::<S, 1>(simd, lines, from);
            from += S::LANES;
        }
    }
}

/// One vector of channels from `from` on, for windows of [`SIDE`] lines and columns.
#[inline(always)]
fn square<S: Simd>(simd: S, lines: &mut DepthwiseLines<'_>, from: usize) {
    let kernel = lines.kernel;
    let channels = kernel.channels;
    let to = (from + S::LANES).min(channels);
    let pitch = lines.size[1] * channels;
    let bias = simd.load(&kernel.row(SIDE * SIDE)[from..][..S::LANES]);
    let mut weights = [[bias; SIDE]; SIDE];
    for (y, weights) in weights.iter_mut().enumerate() {
        for (x, weights) in weights.iter_mut().enumerate() {
            *weights = simd.load(&kernel.row(y * SIDE + x)[from..][..S::LANES]);
        }
    }
    for line in 0..lines.out.len() / (lines.columns * channels) {
        let down = lines.inside(0, lines.first + line);
        for column in 0..lines.columns {
            let right = lines.inside(1, column);
            if down.count < SIDE || right.count < SIDE {
                taps::<S, 1>(simd, lines, from, [line, column], [down, right]);
                continue;
            }
            let at = down.position * pitch + right.position * channels;
            let mut sum = bias;
            for (y, weights) in weights.iter().enumerate() {
                let values = &lines.image[at + y * pitch..];
                for (x, weights) in weights.iter().enumerate() {
                    let value = simd.load(&values[x * channels..][from..to]);
                    sum = simd.mul_add(value, *weights, sum);
                }
            }
            let out = &mut lines.out[(line * lines.columns + column) * channels..][from..to];
            tile::finish::<S, 1>(simd, [sum], None, lines.activation, out);
        }
    }
}

/// `N` vectors of channels from `from` on.
#[inline(always)]
fn any<S: Simd, const N: usize>(simd: S, lines: &mut DepthwiseLines<'_>, from: usize) {
    for line in 0..lines.out.len() / (lines.columns * lines.kernel.channels) {
        let down = lines.inside(0, lines.first + line);
        for column in 0..lines.columns {
            let right = lines.inside(1, column);
            taps::<S, N>(simd, lines, from, [line, column], [down, right]);
        }
    }
}

/// `N` vectors of channels from `from` on, of the window at `[line, column]`.
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
                // The last vector may be partly filled.
                let end = ((n + 1) * S::LANES).min(values.len());
                let value = simd.load(&values[n * S::LANES..end]);
                sums[n] = simd.mul_add(value, weights[n], sums[n]);
            }
        }
    }
    let out = &mut lines.out[(line * lines.columns + column) * channels..][from..to];
    tile::finish::<S, N>(simd, sums, None, lines.activation, out);
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
