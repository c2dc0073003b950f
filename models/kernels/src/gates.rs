//! Smooth functions, and channels scaled by gates.

use crate::error::KernelError;
use crate::functions::{Gelu, GeluTanh, Sigmoid, Silu, each};
use crate::memory::FeatureMap;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// `x / (1 + exp(-x))` of every value.
pub fn silu(values: &mut [f32]) {
    each(values, Silu);
}

/// `1 / (1 + exp(-x))` of every value.
pub fn sigmoid(values: &mut [f32]) {
    each(values, Sigmoid);
}

/// `x` times the hard sigmoid, of every value (Howard et al., "Searching for MobileNetV3", 2019).
pub fn hard_swish(values: &mut [f32]) {
    dispatch(EachScalar(values, |x| x * hard_sigmoid_of(x)));
}

/// The hard sigmoid of every value.
pub fn hard_sigmoid(values: &mut [f32]) {
    dispatch(EachScalar(values, hard_sigmoid_of));
}

/// `x Phi(x)` of every value, with the distribution function of the normal distribution (GELU;
/// Hendrycks and Gimpel, 2016), to a relative error of some 1e-6.
pub fn gelu(values: &mut [f32]) {
    each(values, Gelu);
}

/// The approximation of [`gelu`] with a hyperbolic tangent of every value: `x / 2 (1 +
/// tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
pub fn gelu_tanh(values: &mut [f32]) {
    each(values, GeluTanh);
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

/// A function of every value without vectors of its own: the compiler makes them.
struct EachScalar<'a, F>(&'a mut [f32], F);

impl<F: Fn(f32) -> f32> Vectorized for EachScalar<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for value in self.0 {
            *value = self.1(*value);
        }
    }
}

/// `x / 6 + 1 / 2`, at least 0 and at most 1. `clamp` keeps NaN.
#[inline(always)]
fn hard_sigmoid_of(x: f32) -> f32 {
    (x / 6.0 + 0.5).clamp(0.0, 1.0)
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
    fn gelu_with_a_tangent_agrees_with_the_library() {
        for i in -400..400 {
            let x = i as f32 * 0.05;
            let mut value = [x];
            gelu_tanh(&mut value);
            let x = f64::from(x);
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            let want = 0.5 * x * (1.0 + inner.tanh());
            let apart = (f64::from(value[0]) - want).abs();
            assert!(apart < 1e-6 * x.abs().max(1e-3), "{x}: {} {want}", value[0]);
        }
        let mut nan = [f32::NAN];
        gelu_tanh(&mut nan);
        assert!(nan[0].is_nan());
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
