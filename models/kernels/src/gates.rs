//! Smooth functions, and channels scaled by gates.

use crate::activation;
use crate::error::KernelError;
use crate::memory::FeatureMap;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// `x / (1 + exp(-x))` of every value.
pub fn silu(values: &mut [f32]) {
    each(values, |x| x * logistic(x));
}

/// `1 / (1 + exp(-x))` of every value.
pub fn sigmoid(values: &mut [f32]) {
    each(values, logistic);
}

/// `x` times the hard sigmoid, of every value (Howard et al., "Searching for MobileNetV3", 2019).
pub fn hard_swish(values: &mut [f32]) {
    each(values, |x| x * activation::hard_sigmoid(x));
}

/// The hard sigmoid of every value.
pub fn hard_sigmoid(values: &mut [f32]) {
    each(values, activation::hard_sigmoid);
}

/// `x Phi(x)` of every value, with the distribution function of the normal distribution (GELU;
/// Hendrycks and Gimpel, 2016), to a relative error of some 1e-6.
pub fn gelu(values: &mut [f32]) {
    each(values, |x| {
        let tail = 0.5 * erfc(x.abs() * std::f32::consts::FRAC_1_SQRT_2);
        x * if x < 0.0 { tail } else { 1.0 - tail }
    });
}

/// Multiplies each channel of each image by its gate, `gates` `[images, 1, 1, channels]`.
///
/// # Errors
/// Shapes do not fit.
pub fn scale(x: &mut FeatureMap, gates: &FeatureMap) -> Result<(), KernelError> {
    let [images, _, _, channels] = x.dims();
    if gates.dims() != [images, 1, 1, channels] {
        return Err(KernelError::Shape(format!(
            "gates {:?} for {:?}",
            gates.dims(),
            x.dims()
        )));
    }
    let len = x.image_len();
    scale_values(&mut x.values, &gates.values, len, channels);
    Ok(())
}

/// The same for images of `len` values each, and gates `[images, channels]`.
pub fn scale_values(images: &mut [f32], gates: &[f32], len: usize, channels: usize) {
    let images = images.chunks_exact_mut(len.max(1));
    for (image, gates) in images.zip(gates.chunks_exact(channels.max(1))) {
        dispatch(ScaleChannels { image, gates });
    }
}

struct ScaleChannels<'a> {
    image: &'a mut [f32],
    gates: &'a [f32],
}

impl Vectorized for ScaleChannels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for position in self.image.chunks_exact_mut(self.gates.len()) {
            for (value, gate) in position.iter_mut().zip(self.gates) {
                *value *= gate;
            }
        }
    }
}

/// Applies a function to every value, compiled for the machine's vectors.
#[inline]
fn each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    struct Each<'a, F>(&'a mut [f32], F);
    impl<F: Fn(f32) -> f32> Vectorized for Each<'_, F> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, _: S) {
            for value in self.0 {
                *value = self.1(*value);
            }
        }
    }
    dispatch(Each(values, function));
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The complementary error function of `z >= 0`, to a relative error of 1.2e-7 before rounding: Press
/// et al., "Numerical Recipes", 1992, section 6.2, `erfcc`.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn erfc(z: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.5 * z);
    let series = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let mut sum = 0.0;
    for coefficient in series {
        sum = sum * t + coefficient;
    }
    t * exp(sum - z * z)
}

/// `exp(x)` to about 2 units in the last place, without branches, so that the compiler computes a
/// whole vector at once; `x` is clamped to [-87, 88], where the result is a normal f32.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`, and a polynomial in `r`: Cody and Waite, "Software
/// Manual for the Elementary Functions", 1980. The coefficients are those of the Taylor series; the
/// first term left out is below `r^8 / 8! = 6e-9`.
#[inline(always)]
#[allow(clippy::excessive_precision)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; the first has few enough bits for `n * HIGH` to be exact.
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
    // The integer is in the low bits of `shifted`; as an exponent it is a power of two.
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
    fn smooth_functions_agree_with_the_library() {
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
    fn hard_functions_have_their_corners() {
        let x = [-4.0f32, -3.0, -1.5, 0.0, 1.5, 3.0, 4.0, f32::MAX, f32::MIN];
        let (mut swishes, mut sigmoids) = (x.to_vec(), x.to_vec());
        hard_swish(&mut swishes);
        hard_sigmoid(&mut sigmoids);
        assert_eq!(sigmoids[..7], [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]);
        assert_eq!(swishes[..7], [-0.0, -0.0, -0.375, 0.0, 1.125, 3.0, 4.0]);
        assert_eq!((swishes[7], swishes[8]), (f32::MAX, -0.0));
        let mut odd = [f32::NAN];
        hard_swish(&mut odd);
        assert!(odd[0].is_nan());
    }

    #[test]
    fn gelu_agrees_with_tables() {
        // x Phi(x), from tables of the normal distribution.
        let known: [(f32, f64); 7] = [
            (0.0, 0.0),
            (0.5, 0.345_731_23),
            (1.0, 0.841_344_746),
            (-1.0, -0.158_655_254),
            (2.0, 1.954_499_736),
            (-3.0, -0.004_049_694),
            (6.0, 6.0),
        ];
        for (x, want) in known {
            let mut value = [x];
            gelu(&mut value);
            let apart = (f64::from(value[0]) - want).abs();
            assert!(
                apart <= 2e-6 * want.abs().max(1e-3),
                "{x}: {} {want}",
                value[0]
            );
        }
        let mut extremes = [f32::MAX, f32::MIN, f32::NAN, f32::INFINITY];
        gelu(&mut extremes);
        assert_eq!((extremes[0], extremes[3]), (f32::MAX, f32::INFINITY));
        assert!(
            extremes[1].abs() < 1e3 && extremes[2].is_nan(),
            "{extremes:?}"
        );
    }

    #[test]
    fn extremes_stay_finite() {
        let mut values = [f32::MAX, f32::MIN, 0.0, -0.0, 1e-40];
        silu(&mut values);
        assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
        assert_eq!(values[0], f32::MAX);
    }

    #[test]
    fn channels_are_scaled_image_by_image() {
        let mut x = FeatureMap::new([2, 1, 2, 2]);
        x.values.copy_from_slice(&[1., 2., 3., 4., 5., 6., 7., 8.]);
        let mut gates = FeatureMap::new([2, 1, 1, 2]);
        gates.values.copy_from_slice(&[1., 2., 0., -1.]);
        scale(&mut x, &gates).unwrap();
        assert_eq!(*x.values, [1., 4., 3., 8., 0., -6., 0., -8.]);
        assert!(scale(&mut gates, &x).is_err());
    }
}
