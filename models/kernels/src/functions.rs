//! Smooth functions of whole vectors.

use crate::simd::dispatch;
use crate::simd::vectors::{ROUND, Simd, Vectorized};

/// A function of every lane.
pub(crate) trait VectorFunction: Copy {
    /// Must be `#[inline(always)]`.
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector;
}

/// `x / (1 + exp(-x))`.
#[derive(Clone, Copy)]
pub(crate) struct Silu;

/// `1 / (1 + exp(-x))`.
#[derive(Clone, Copy)]
pub(crate) struct Sigmoid;

/// `x Phi(x)`, with the distribution function of the normal distribution.
#[derive(Clone, Copy)]
pub(crate) struct Gelu;

/// The approximation of [`Gelu`] with a hyperbolic tangent.
#[derive(Clone, Copy)]
pub(crate) struct GeluTanh;

/// Applies a function to every value.
pub(crate) fn each(values: &mut [f32], function: impl VectorFunction) {
    dispatch(Each { values, function });
}

struct Each<'a, F> {
    values: &'a mut [f32],
    function: F,
}

impl<F: VectorFunction> Vectorized for Each<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for part in self.values.chunks_mut(S::LANES) {
            let x = simd.load(part);
            simd.store(part, self.function.of(simd, x));
        }
    }
}

impl VectorFunction for Silu {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        simd.mul(x, Sigmoid.of(simd, x))
    }
}

impl VectorFunction for Sigmoid {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        let one = simd.splat(1.0);
        let minus = simd.sub(simd.splat(0.0), x);
        simd.div(one, simd.add(one, exp(simd, minus)))
    }
}

impl VectorFunction for Gelu {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        /// Beyond it the normal distribution's tail is below the smallest f32.
        const FAR: f32 = 16.0;
        let zero = simd.splat(0.0);
        let size = simd.max(simd.sub(zero, x), x);
        let size = simd.min(simd.splat(FAR), size);
        let z = simd.mul(size, simd.splat(std::f32::consts::FRAC_1_SQRT_2));
        let tail = simd.mul(simd.splat(-0.5), erfc(simd, z));
        simd.mul_add(size, tail, simd.max(zero, x))
    }
}

impl VectorFunction for GeluTanh {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        // 0.5 (1 + tanh(y)) is the sigmoid of 2 y, and y is sqrt(2 / pi) (x + 0.044715 x^3).
        const LINEAR: f32 = 1.595_769_1;
        const CUBIC: f32 = LINEAR * 0.044_715;
        let square = simd.mul(x, x);
        let factor = simd.mul_add(square, simd.splat(CUBIC), simd.splat(LINEAR));
        simd.mul(x, Sigmoid.of(simd, simd.mul(x, factor)))
    }
}

/// The complementary error function of `z >= 0`, to a relative error of 1.2e-7 before rounding: Press
/// et al., "Numerical Recipes", 1992, section 6.2, `erfcc`.
#[inline(always)]
#[allow(clippy::excessive_precision)]
fn erfc<S: Simd>(simd: S, z: S::Vector) -> S::Vector {
    const SERIES: [f32; 10] = [
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
    let one = simd.splat(1.0);
    let t = simd.div(one, simd.mul_add(z, simd.splat(0.5), one));
    let sum = polynomial(simd, t, SERIES);
    let minus = simd.sub(simd.splat(0.0), z);
    simd.mul(t, exp(simd, simd.mul_add(minus, z, sum)))
}

/// `exp(x)` to about 2 units in the last place; `x` is clamped to [-87, 88], where the result is a
/// normal f32.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`, and a polynomial in `r`: Cody and Waite, "Software
/// Manual for the Elementary Functions", 1980. The coefficients are those of the Taylor series; the
/// first term left out is below `r^8 / 8! = 6e-9`.
#[inline(always)]
#[allow(clippy::excessive_precision)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    // ln 2 in two parts; the first has few enough bits for `n * HIGH` to be exact.
    const HIGH: f32 = 0.693_359_375;
    const LOW: f32 = -2.121_944_4e-4;
    const SERIES: [f32; 8] = [
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    // In this order NaN stays NaN.
    let x = simd.min(simd.splat(88.0), simd.max(simd.splat(-87.0), x));
    let shifted = simd.mul_add(x, simd.splat(std::f32::consts::LOG2_E), simd.splat(ROUND));
    let n = simd.sub(shifted, simd.splat(ROUND));
    let r = simd.mul_add(n, simd.splat(-HIGH), x);
    let r = simd.mul_add(n, simd.splat(-LOW), r);
    simd.mul(polynomial(simd, r, SERIES), simd.power_of_two(shifted))
}

/// By Horner's rule; the coefficient of the highest power first.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::Vector, series: [f32; N]) -> S::Vector {
    let mut sum = simd.splat(series[0]);
    // Indexed by constants once unrolled.
    #[allow(clippy::needless_range_loop)]
    for i in 1..N {
        sum = simd.mul_add(sum, x, simd.splat(series[i]));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Exp;

    impl VectorFunction for Exp {
        #[inline(always)]
        fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
            exp(simd, x)
        }
    }

    #[test]
    fn exponentials_agree_with_the_library_and_stay_normal() {
        let x: Vec<f32> = (-8_700..8_800).map(|i| i as f32 * 0.01).collect();
        let mut ours = x.clone();
        each(&mut ours, Exp);
        for (x, ours) in x.iter().zip(&ours) {
            let want = f64::from(*x).exp();
            assert!((f64::from(*ours) - want).abs() < 3e-7 * want, "{x}: {ours}");
        }
        let mut extremes = [
            f32::NEG_INFINITY,
            f32::MIN,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        each(&mut extremes, Exp);
        assert!(extremes[..4].iter().all(|x| x.is_normal()), "{extremes:?}");
        assert!(extremes[4].is_nan());
    }
}
