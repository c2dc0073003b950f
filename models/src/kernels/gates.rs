//! Smooth functions, and channels scaled by them.

use super::Map;
use super::simd::{Simd, Vectorized, dispatch};

/// `x / (1 + exp(-x))` for every number.
pub(crate) fn silu(numbers: &mut [f32]) {
    each(numbers, |x| x * logistic(x));
}

/// `1 / (1 + exp(-x))` for every number.
pub(crate) fn sigmoid(numbers: &mut [f32]) {
    each(numbers, logistic);
}

/// Multiplies each channel of each picture by its gate, `gates` `[pictures, 1, 1, channels]`.
///
/// # Errors
/// Shapes do not fit.
pub(crate) fn scale(x: &mut Map, gates: &Map) -> candle_core::Result<()> {
    let [pictures, _, _, channels] = x.dims();
    if gates.dims() != [pictures, 1, 1, channels] {
        candle_core::bail!("gates {:?} for {:?}", gates.dims(), x.dims());
    }
    let len = x.picture_len().max(1);
    let all = x.numbers.chunks_exact_mut(len);
    for (picture, gates) in all.zip(gates.numbers.chunks_exact(channels.max(1))) {
        dispatch(Scale { picture, gates });
    }
    Ok(())
}

struct Scale<'a> {
    picture: &'a mut [f32],
    gates: &'a [f32],
}

impl Vectorized for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for position in self.picture.chunks_exact_mut(self.gates.len()) {
            for (value, gate) in position.iter_mut().zip(self.gates) {
                *value *= gate;
            }
        }
    }
}

/// A function of every number, compiled for the machine's vectors.
#[inline]
fn each(numbers: &mut [f32], function: impl Fn(f32) -> f32) {
    struct Each<'a, F>(&'a mut [f32], F);
    impl<F: Fn(f32) -> f32> Vectorized for Each<'_, F> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, _: S) {
            for number in self.0 {
                *number = self.1(*number);
            }
        }
    }
    dispatch(Each(numbers, function));
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `exp(x)` to about 2 units in the last place, without branches, so that it is computed for a
/// vector at once; `x` is brought into [-87, 88], where the result is a normal number.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`, and a polynomial in `r`: Cody and Waite, "Software
/// Manual for the Elementary Functions", 1980. The coefficients are the Taylor series', whose
/// first left-out term is below `r^8 / 8! = 6e-9`.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first of few enough bits for `n * HIGH` to be exact.
    const HIGH: f32 = 0.693_359_375;
    const LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * HIGH) - n * LOW;
    let series = [
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let mut sum = 0.0;
    for coefficient in series {
        sum = sum * r + coefficient;
    }
    // The integer stands in the low bits of `shifted`; as an exponent it is a power of two.
    let power = shifted
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
        .wrapping_add(127)
        << 23;
    sum * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn smooth_functions_are_those_of_the_library() {
        let x: Vec<f32> = (-2000..2000).map(|i| i as f32 * 0.05).collect();
        let (mut silus, mut sigmoids) = (x.clone(), x.clone());
        silu(&mut silus);
        sigmoid(&mut sigmoids);
        for (i, x) in x.iter().enumerate() {
            let want = 1.0 / (1.0 + (-f64::from(*x)).exp());
            let relative = (f64::from(sigmoids[i]) - want).abs() / want.max(1e-37);
            assert!(relative < 1e-6 || *x < -86.0, "{x}: {} {want}", sigmoids[i]);
            let apart = (f64::from(silus[i]) - f64::from(*x) * want).abs();
            assert!(
                apart < 1e-6 * f64::from(x.abs()).max(1e-3),
                "{x}: {}",
                silus[i]
            );
        }
    }

    #[test]
    fn extremes_stay_finite() {
        let mut numbers = [f32::MAX, f32::MIN, 0.0, -0.0, 1e-40];
        silu(&mut numbers);
        assert!(numbers.iter().all(|x| x.is_finite()), "{numbers:?}");
        assert_eq!(numbers[0], f32::MAX);
    }

    #[test]
    fn channels_are_scaled_picture_by_picture() {
        let mut x = Map::new([2, 1, 2, 2]);
        x.numbers.copy_from_slice(&[1., 2., 3., 4., 5., 6., 7., 8.]);
        let mut gates = Map::new([2, 1, 1, 2]);
        gates.numbers.copy_from_slice(&[1., 2., 0., -1.]);
        scale(&mut x, &gates).unwrap();
        assert_eq!(*x.numbers, [1., 4., 3., 8., 0., -6., 0., -8.]);
        assert!(scale(&mut gates, &x).is_err());
    }
}
