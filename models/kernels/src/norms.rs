//! Normalisation over the channels of a position.

use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// Sums of a row that are added side by side, so that the compiler keeps them in vectors.
const SUMS: usize = 32;

/// Normalises each row of `values` to mean 0 and variance 1, then multiplies by `scale` and adds
/// `shift` (Ba et al., "Layer normalization", 2016). A row is as long as `scale`.
///
/// # Panics
/// `scale` and `shift` differ in length, or rows do not fill `values`.
pub fn layer_norm(values: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
    assert_eq!(scale.len(), shift.len(), "scale and shift");
    assert!(values.len().is_multiple_of(scale.len().max(1)), "rows");
    dispatch(LayerNorm {
        values,
        scale,
        shift,
        epsilon,
    });
}

struct LayerNorm<'a> {
    values: &'a mut [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    epsilon: f32,
}

impl Vectorized for LayerNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let width = self.scale.len().max(1);
        let share = 1.0 / width as f32;
        for row in self.values.chunks_exact_mut(width) {
            let mean = sum(row, |x| x) * share;
            let variance = sum(row, |x| (x - mean) * (x - mean)) * share;
            let factor = 1.0 / (variance + self.epsilon).sqrt();
            for ((x, scale), shift) in row.iter_mut().zip(self.scale).zip(self.shift) {
                *x = (*x - mean) * factor * scale + shift;
            }
        }
    }
}

/// The sum of a function of every value.
#[inline(always)]
fn sum(row: &[f32], function: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = row.as_chunks::<SUMS>();
    let mut sums = [0.0f32; SUMS];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += function(*x);
        }
    }
    let mut whole: f32 = sums.iter().sum();
    for x in rest {
        whole += function(*x);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    #[test]
    fn rows_are_those_of_the_definition() {
        for width in [1, 7, 64, 131] {
            let x = random(3 * width, 4.0);
            let (scale, shift) = (random(width, 1.0), random(width, 1.0));
            let mut ours = x.clone();
            layer_norm(&mut ours, &scale, &shift, 1e-6);
            for (row, ours) in x.chunks(width).zip(ours.chunks(width)) {
                let each = row.iter().map(|x| f64::from(*x));
                let mean = each.clone().sum::<f64>() / width as f64;
                let variance = each.map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
                for (i, ours) in ours.iter().enumerate() {
                    let normed = (f64::from(row[i]) - mean) / (variance + 1e-6).sqrt();
                    let want = normed * f64::from(scale[i]) + f64::from(shift[i]);
                    assert!((f64::from(*ours) - want).abs() < 1e-5, "{ours} {want}");
                }
            }
        }
    }
}
