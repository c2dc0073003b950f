//! Winograd's transforms of weights, inputs and sums; `A`, `B` and `G` are the paper's (equation
//! 8).

use std::array;

use crate::simd::vectors::Simd;

/// Outputs of a tile, along each axis.
pub(super) const TILE: usize = 2;

/// Values that a tile reads, along each axis.
pub(super) const READ: usize = TILE + 2;

/// Products of a tile for each channel.
pub(super) const POINTS: usize = READ * READ;

/// `G g G^T`: 3 x 3 weights at 16 points.
pub(super) fn of_weights(window: [[f64; 3]; 3]) -> [f32; POINTS] {
    let along = |[a, b, c]: [f64; 3]| [a, (a + b + c) / 2.0, (a - b + c) / 2.0, c];
    let rows = window.map(along);
    let columns: [_; READ] = array::from_fn(|x| along(rows.map(|row| row[x])));
    array::from_fn(|point| columns[point % READ][point / READ] as f32)
}

/// `B^T d B` of the first `len` channels of a tile; the 16 points lie `plane` apart in `to`.
#[inline(always)]
pub(super) fn read_tile<S: Simd>(
    simd: S,
    from: &[f32],
    [pitch, channels]: [usize; 2],
    to: &mut [f32],
    plane: usize,
    len: usize,
) {
    let mut rows = [[simd.splat(0.0); READ]; READ];
    for (y, row) in rows.iter_mut().enumerate() {
        for (x, value) in row.iter_mut().enumerate() {
            *value = simd.load(&from[y * pitch + x * channels..][..len]);
        }
        *row = of_input(simd, *row);
    }
    for x in 0..READ {
        let column = of_input(simd, [rows[0][x], rows[1][x], rows[2][x], rows[3][x]]);
        for (y, value) in column.into_iter().enumerate() {
            simd.store(&mut to[(READ * y + x) * plane..][..len], value);
        }
    }
}

#[inline(always)]
fn of_input<S: Simd>(simd: S, [a, b, c, d]: [S::Vector; READ]) -> [S::Vector; READ] {
    [
        simd.sub(a, c),
        simd.add(b, c),
        simd.sub(c, b),
        simd.sub(b, d),
    ]
}

/// `A^T m A + bias` of the first `len` channels of a tile.
#[inline(always)]
pub(super) fn write_tile<S: Simd>(
    simd: S,
    from: &[f32],
    plane: usize,
    len: usize,
    biases: S::Vector,
) -> [[S::Vector; TILE]; TILE] {
    let zero = simd.splat(0.0);
    let mut rows = [[zero; TILE]; READ];
    for (y, row) in rows.iter_mut().enumerate() {
        let mut points = [zero; READ];
        for (x, point) in points.iter_mut().enumerate() {
            *point = simd.load(&from[(READ * y + x) * plane..][..len]);
        }
        *row = of_sums(simd, points);
    }
    let mut tile = [[zero; TILE]; TILE];
    for x in 0..TILE {
        let column = of_sums(simd, [rows[0][x], rows[1][x], rows[2][x], rows[3][x]]);
        for (y, sum) in column.into_iter().enumerate() {
            tile[y][x] = simd.add(sum, biases);
        }
    }
    tile
}

#[inline(always)]
fn of_sums<S: Simd>(simd: S, [a, b, c, d]: [S::Vector; READ]) -> [S::Vector; TILE] {
    [simd.add(simd.add(a, b), c), simd.sub(simd.sub(b, c), d)]
}
