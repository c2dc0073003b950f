//! Vectors of `f32` of one instruction set.
//!
//! Instructions beyond those that the binary is compiled for may only run on machines that have
//! them. So `Avx2` and `Avx512` are tokens: [`dispatch`](super::dispatch()) makes them after asking
//! the machine, and code that takes a token may rely on the instructions. Code generic over
//! [`Simd`] must be `#[inline(always)]` down from [`Vectorized::run`], so that it is compiled as
//! part of a function that has these instructions.

/// The upper bits of a word.
pub(super) const HIGH_HALF: u32 = 0xffff_0000;

/// 1.5 * 2^23: adding it rounds to the nearest integer, which is then in the low bits.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// Added to the bits of `n + ROUND`, it makes the low bits the exponent of `2^n`.
pub(super) const EXPONENT: u32 = 127u32.wrapping_sub(ROUND.to_bits());

/// Bits below the exponent.
pub(super) const MANTISSA_BITS: u32 = 23;

/// The bits of the square root of 1/2.
pub(super) const LEAST_MANTISSA: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();

/// Vectors of one instruction set. A value of the type proves that the machine has it.
pub(crate) trait Simd: Copy {
    type Vector: Copy;

    /// Values in a vector.
    const LANES: usize;

    /// Vectors that fit into registers.
    const REGISTERS: usize;

    fn splat(self, x: f32) -> Self::Vector;

    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `b` if either is NaN.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `b` if either is NaN.
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `2^n` of each `n + ROUND` with a whole `n` in [-126, 127]; NaN gives an arbitrary value.
    fn power_of_two(self, shifted: Self::Vector) -> Self::Vector;

    /// `m` in [sqrt(1/2), sqrt(2)) and a whole `e` of each positive normal `m * 2^e`; other values
    /// give arbitrary ones.
    fn mantissa_and_exponent(self, x: Self::Vector) -> [Self::Vector; 2];

    /// `a * b + c`, rounded once if the machine has the instruction.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;

    /// Each word's lower 16 bits, as the upper bits of an f32.
    fn low_half(self, words: Self::Vector) -> Self::Vector;

    /// Each word's upper 16 bits.
    fn high_half(self, words: Self::Vector) -> Self::Vector;

    /// Loads all of `from`, at most a vector; the remaining lanes are 0.
    fn load(self, from: &[f32]) -> Self::Vector;

    /// Loads all of `from`, at most a vector, into the last lanes; the other lanes are 0.
    fn load_last(self, from: &[f32]) -> Self::Vector;

    /// Fills `to`, which is at most a vector.
    fn store(self, to: &mut [f32], vector: Self::Vector);

    /// Has the machine fetch the memory of `vector` into the cache of its core. Changes no value.
    fn prefetch(self, vector: &Self::Vector);

    /// Views values that start at a multiple of a vector's size, and are a multiple of one, as
    /// vectors.
    fn vectors(self, values: &[f32]) -> &[Self::Vector];
}

/// Code that is written once for all instruction sets.
pub(crate) trait Vectorized {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// `N` values, in plain code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable<const N: usize>;

impl<const N: usize> Simd for Portable<N> {
    type Vector = [f32; N];

    const LANES: usize = N;
    // Machines with long vectors have many registers.
    const REGISTERS: usize = if N > 8 { 32 } else { 16 };

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; N] {
        [x; N]
    }

    #[inline(always)]
    fn add(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn div(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn max(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn min(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn power_of_two(self, shifted: [f32; N]) -> [f32; N] {
        shifted.map(|x| f32::from_bits(x.to_bits().wrapping_add(EXPONENT) << MANTISSA_BITS))
    }

    #[inline(always)]
    fn mantissa_and_exponent(self, x: [f32; N]) -> [[f32; N]; 2] {
        let exponents = x.map(|x| {
            let above = x.to_bits().wrapping_sub(LEAST_MANTISSA).cast_signed();
            above >> MANTISSA_BITS
        });
        let mantissa = |i: usize| {
            let exponent = exponents[i].cast_unsigned() << MANTISSA_BITS;
            f32::from_bits(x[i].to_bits().wrapping_sub(exponent))
        };
        [std::array::from_fn(mantissa), exponents.map(|e| e as f32)]
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        // Without such an instruction, rounding once takes a library call.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
        } else {
            std::array::from_fn(|i| a[i] * b[i] + c[i])
        }
    }

    #[inline(always)]
    fn low_half(self, words: [f32; N]) -> [f32; N] {
        words.map(|word| f32::from_bits(word.to_bits() << 16))
    }

    #[inline(always)]
    fn high_half(self, words: [f32; N]) -> [f32; N] {
        words.map(|word| f32::from_bits(word.to_bits() & HIGH_HALF))
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> [f32; N] {
        filled(from)
    }

    #[inline(always)]
    fn load_last(self, from: &[f32]) -> [f32; N] {
        let mut values = [0.0; N];
        values[N - from.len()..].copy_from_slice(from);
        values
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], vector: [f32; N]) {
        to.copy_from_slice(&vector[..to.len()]);
    }

    #[inline(always)]
    fn prefetch(self, _: &[f32; N]) {}

    #[inline(always)]
    fn vectors(self, values: &[f32]) -> &[[f32; N]] {
        values.as_chunks().0
    }
}

/// `from`, followed by zeros.
#[inline(always)]
pub(super) fn filled<const N: usize>(from: &[f32]) -> [f32; N] {
    match from.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut values = [0.0; N];
            values[..from.len()].copy_from_slice(from);
            values
        }
    }
}
