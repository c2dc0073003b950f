//! Smooth functions of whole vectors.

use crate::simd::dispatch;
use crate::simd::vectors::{ROUND, Simd, Vectorized};

/// `ln 2` in two parts; the first has few enough bits for its product with an exponent to be exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

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
        const LINEAR: f32 = 1.595_769;
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
    let r = simd.mul_add(n, simd.splat(-LN_2_HIGH), x);
    let r = simd.mul_add(n, simd.splat(-LN_2_LOW), r);
    simd.mul(polynomial(simd, r, SERIES), simd.power_of_two(shifted))
}

/// `ln(x)` of a positive normal `x` to about 1 unit in the last place; infinity and NaN give NaN.
///
/// `x = 2^e m` with `m` around 1, and a polynomial in `m - 1` with the coefficients of `logf` of the
/// library Cephes (Moshier, "Methods and Programs for Mathematical Functions", 1989).
#[inline(always)]
#[allow(clippy::excessive_precision)]
pub(crate) fn ln<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    const SERIES: [f32; 9] = [
        7.037_683_629_2e-2,
        -1.151_461_031_0e-1,
        1.167_699_874_0e-1,
        -1.242_014_084_6e-1,
        1.424_932_278_7e-1,
        -1.666_805_766_5e-1,
        2.000_071_476_5e-1,
        -2.499_999_399_3e-1,
        3.333_333_117_4e-1,
    ];
    let [m, e] = simd.mantissa_and_exponent(x);
    let r = simd.sub(m, simd.splat(1.0));
    let square = simd.mul(r, r);
    let cubic = simd.mul(simd.mul(r, square), polynomial(simd, r, SERIES));
    let sum = simd.mul_add(e, simd.splat(LN_2_LOW), cubic);
    let sum = simd.mul_add(square, simd.splat(-0.5), sum);
    let sum = simd.mul_add(e, simd.splat(LN_2_HIGH), simd.add(r, sum));
    // `x - x` is 0, and NaN if `x` is infinite or NaN.
    simd.add(sum, simd.sub(x, x))
}

/// `tanh(x)` to about 3 units in the last place; below 2^-110 products lose bits.
///
/// An odd polynomial over an even one, with the coefficients of the library Eigen.
#[inline(always)]
#[allow(clippy::excessive_precision)]
pub(crate) fn tanh<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    /// From here on, the quotient rounds to 1.
    const FAR: f32 = 7.905_311_107_635_498;
    const ODD: [f32; 7] = [
        -2.760_768_477_423_55e-16,
        2.000_187_904_824_77e-13,
        -8.604_671_522_137_35e-11,
        5.122_297_090_371_14e-8,
        1.485_722_357_179_79e-5,
        6.372_619_288_754_36e-4,
        4.893_524_558_917_86e-3,
    ];
    const EVEN: [f32; 4] = [
        1.198_258_394_667_02e-6,
        1.185_347_056_866_54e-4,
        2.268_434_632_439_00e-3,
        4.893_525_185_543_85e-3,
    ];
    // In this order NaN stays NaN.
    let x = simd.min(simd.splat(FAR), simd.max(simd.splat(-FAR), x));
    let square = simd.mul(x, x);
    let odd = simd.mul(x, polynomial(simd, square, ODD));
    simd.div(odd, polynomial(simd, square, EVEN))
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
mod tests;
