//! Convolutions of MiniRocket and the features that it takes of them (Dempster et al., "MiniRocket", 2021).

use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// Adds `gain * (base + (a + b + c))` to every value of `sums`, for the three `taps`.
///
/// # Panics
/// `base` or a tap is shorter than `sums`.
pub fn add_taps(sums: &mut [f32], gain: f32, base: &[f32], taps: [&[f32]; 3]) {
    dispatch(AddTaps {
        sums,
        gain,
        base,
        taps,
    });
}

/// Makes every value of `sums` minus the sum of its taps.
///
/// # Panics
/// A tap is shorter than `sums`.
pub fn minus_taps<const TAPS: usize>(sums: &mut [f32], taps: [&[f32]; TAPS]) {
    dispatch(MinusTaps { sums, taps });
}

/// For each of `biases`, the share of `values` above it, appended to `shares`: the paper's "proportion of
/// positive values".
pub fn shares_above(values: &[f32], biases: &[f32], shares: &mut Vec<f32>) {
    dispatch(SharesAbove {
        values,
        biases,
        shares,
    });
}

struct AddTaps<'a> {
    sums: &'a mut [f32],
    gain: f32,
    base: &'a [f32],
    taps: [&'a [f32]; 3],
}

impl Vectorized for AddTaps<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        // Of one length, known here: nothing is checked in the loop.
        let count = self.sums.len();
        let base = &self.base[..count];
        let [a, b, c] = self.taps.map(|tap| &tap[..count]);
        for (i, sum) in self.sums.iter_mut().enumerate() {
            *sum += self.gain * (base[i] + (a[i] + b[i] + c[i]));
        }
    }
}

struct MinusTaps<'a, const TAPS: usize> {
    sums: &'a mut [f32],
    taps: [&'a [f32]; TAPS],
}

impl<const TAPS: usize> Vectorized for MinusTaps<'_, TAPS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let count = self.sums.len();
        let taps = self.taps.map(|tap| &tap[..count]);
        for (i, to) in self.sums.iter_mut().enumerate() {
            let mut sum = 0.0;
            for tap in taps {
                sum -= tap[i];
            }
            *to = sum;
        }
    }
}

struct SharesAbove<'a> {
    values: &'a [f32],
    biases: &'a [f32],
    shares: &'a mut Vec<f32>,
}

impl Vectorized for SharesAbove<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for bias in self.biases {
            // Whole numbers: a sum of f32 has one order, and so one addition at a time.
            let mut above = 0_u32;
            for value in self.values {
                above += u32::from(value > bias);
            }
            self.shares.push(above as f32 / self.values.len() as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    const LENGTHS: [usize; 6] = [1, 7, 16, 33, 150, 187];

    #[test]
    fn taps_are_added_as_defined() {
        for len in LENGTHS {
            let [base, a, b, c, before] = [0, 1, 2, 3, 4].map(|_| random(len + 3, 1.0));
            let mut sums = before[..len].to_vec();
            add_taps(&mut sums, 0.5, &base, [&a, &b, &c]);
            for (i, sum) in sums.into_iter().enumerate() {
                assert_eq!(sum, before[i] + 0.5 * (base[i] + (a[i] + b[i] + c[i])));
            }
        }
    }

    #[test]
    fn taps_are_subtracted_from_zero() {
        for len in LENGTHS {
            let [a, b, c] = [0, 1, 2].map(|_| random(len + 3, 1.0));
            let mut sums = vec![9.0; len];
            minus_taps(&mut sums, [&a, &b, &c]);
            for (i, sum) in sums.into_iter().enumerate() {
                assert_eq!(sum, 0.0 - a[i] - b[i] - c[i]);
            }
        }
    }

    #[test]
    fn shares_count_values_above_and_not_at_the_bias() {
        for len in LENGTHS {
            let values: Vec<f32> = (0..len).map(|i| (i * 7 % len) as f32).collect();
            let biases = [-1.0, 0.0, (len / 2) as f32, len as f32];
            let mut shares = vec![9.0];
            shares_above(&values, &biases, &mut shares);
            let wanted = biases.map(|bias| {
                let above = values.iter().filter(|value| **value > bias).count();
                above as f32 / len as f32
            });
            assert_eq!(shares[0], 9.0);
            assert_eq!(shares[1..], wanted, "{len}");
        }
    }
}
