//! Layer normalisation (Ba et al., 2016), and centred values.

use rayon::prelude::*;

use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// The most lanes of a vector.
const LANES_MAX: usize = 16;

/// Values that a thread normalises at once.
const SHARE: usize = 16 << 10;

/// Makes `(x - mean) / sqrt(variance + eps) * scale + shift` of every row; a row is as long as
/// `scale` and `shift`.
///
/// # Panics
/// The lengths do not fit.
pub fn layer_norm(rows: &mut [f32], scale: &[f32], shift: &[f32], eps: f32) {
    let width = scale.len().max(1);
    assert_eq!(shift.len(), scale.len(), "scale and shift");
    assert!(rows.len().is_multiple_of(width), "whole rows");
    let norm = |rows: &mut [f32]| {
        dispatch(LayerNorm {
            rows,
            scale,
            shift,
            eps,
        });
    };
    let share = (SHARE / width).max(1) * width;
    match rayon::current_num_threads() {
        1 => norm(rows),
        _ => rows.par_chunks_mut(share).for_each(norm),
    }
}

/// Makes `(x - mean) * factor` of every value, with the mean of all of them.
pub fn centre(values: &mut [f32], factor: f32) {
    dispatch(Centre { values, factor });
}

struct Centre<'a> {
    values: &'a mut [f32],
    factor: f32,
}

impl Vectorized for Centre<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mean = sum(simd, self.values, 0.0, false) / self.values.len().max(1) as f32;
        let (mean, factor) = (simd.splat(mean), simd.splat(self.factor));
        for part in self.values.chunks_mut(S::LANES) {
            let x = simd.mul(simd.sub(simd.load(part), mean), factor);
            simd.store(part, x);
        }
    }
}

struct LayerNorm<'a> {
    rows: &'a mut [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    eps: f32,
}

impl Vectorized for LayerNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let width = self.scale.len();
        for row in self.rows.chunks_exact_mut(width.max(1)) {
            let mean = sum(simd, row, 0.0, false) / width as f32;
            let variance = sum(simd, row, mean, true) / width as f32;
            let factor = simd.splat(1.0 / (variance + self.eps).sqrt());
            let mean = simd.splat(mean);
            let scales = self.scale.chunks(S::LANES).zip(self.shift.chunks(S::LANES));
            for (part, (scale, shift)) in row.chunks_mut(S::LANES).zip(scales) {
                let x = simd.mul(simd.sub(simd.load(part), mean), factor);
                simd.store(part, simd.mul_add(x, simd.load(scale), simd.load(shift)));
            }
        }
    }
}

/// Sum of `x - mean` of a row, or of their squares.
#[inline(always)]
fn sum<S: Simd>(simd: S, row: &[f32], mean: f32, squared: bool) -> f32 {
    // Several chains of sums: one alone waits for each addition.
    let mut sums = [simd.splat(0.0); 4];
    let mean_of_all = simd.splat(mean);
    let mut blocks = row.chunks_exact(4 * S::LANES);
    for block in &mut blocks {
        for (i, sum) in sums.iter_mut().enumerate() {
            let x = simd.load(&block[i * S::LANES..][..S::LANES]);
            *sum = add(simd, *sum, simd.sub(x, mean_of_all), squared);
        }
    }
    let mut lanes = [0.0; LANES_MAX];
    for (sum, part) in sums.iter_mut().zip(blocks.remainder().chunks(S::LANES)) {
        // Lanes behind the end hold 0, and are to add 0.
        lanes[..part.len()].fill(mean);
        let means = simd.load(&lanes[..part.len()]);
        *sum = add(simd, *sum, simd.sub(simd.load(part), means), squared);
    }
    let [a, b, c, d] = sums;
    simd.store(
        &mut lanes[..S::LANES],
        simd.add(simd.add(a, b), simd.add(c, d)),
    );
    lanes[..S::LANES].iter().sum()
}

/// Not a closure: closures are compiled without the instruction set.
#[inline(always)]
fn add<S: Simd>(simd: S, sum: S::Vector, x: S::Vector, squared: bool) -> S::Vector {
    match squared {
        true => simd.mul_add(x, x, sum),
        false => simd.add(sum, x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pool, random};

    #[test]
    fn rows_are_normalised_as_defined() {
        for width in [1, 3, 16, 40, 64, 133, 384] {
            // A mean far from 0 cancels if squares are summed before it is subtracted.
            let x: Vec<f32> = random(70 * width, 1.0).iter().map(|x| x + 100.0).collect();
            let (scale, shift) = (random(width, 1.0), random(width, 1.0));
            let mut ours = x.clone();
            pool(1).install(|| layer_norm(&mut ours, &scale, &shift, 1e-5));
            for (x, ours) in x.chunks(width).zip(ours.chunks(width)) {
                let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
                let mean = x.iter().sum::<f64>() / width as f64;
                let squares = x.iter().map(|x| (x - mean).powi(2));
                let deviation = (squares.sum::<f64>() / width as f64 + 1e-5).sqrt();
                for (i, ours) in ours.iter().enumerate() {
                    let (scale, shift) = (f64::from(scale[i]), f64::from(shift[i]));
                    let want = (x[i] - mean) / deviation * scale + shift;
                    // The values themselves are rounded to 4e-6.
                    let apart = (f64::from(*ours) - want).abs();
                    assert!(
                        apart < 1e-4 * (1.0 + 0.1 / deviation),
                        "{width}: {ours} {want}"
                    );
                }
            }
            let mut shared = x.clone();
            pool(3).install(|| layer_norm(&mut shared, &scale, &shift, 1e-5));
            assert_eq!(shared, ours, "on any number of threads");
        }
    }

    #[test]
    fn values_are_centred() {
        for len in [0, 1, 7, 64, 133, 4000] {
            let x: Vec<f32> = random(len, 1.0).iter().map(|x| x + 10.0).collect();
            let mut ours = x.clone();
            centre(&mut ours, 0.5);
            let mean = x.iter().copied().map(f64::from).sum::<f64>() / len as f64;
            for (x, ours) in x.iter().zip(&ours) {
                let want = (f64::from(*x) - mean) * 0.5;
                assert!(
                    (f64::from(*ours) - want).abs() < 1e-5,
                    "{len}: {ours} {want}"
                );
            }
        }
        let mut values = [1.0, f32::NAN, 2.0];
        centre(&mut values, 0.5);
        assert!(values.iter().all(|x| x.is_nan()));
    }

    #[test]
    fn nan_stays_in_its_row() {
        let mut rows = [1.0, f32::NAN, 2.0, 3.0];
        layer_norm(&mut rows, &[1.0; 2], &[0.0; 2], 1e-5);
        assert!(rows[..2].iter().all(|x| x.is_nan()) && rows[2..].iter().all(|x| x.is_finite()));
    }
}
