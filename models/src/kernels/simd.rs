//! Vectors of `f32`, with the instructions of the machine the process runs on.
//!
//! With [`bytes`](super::bytes) and [`products`](super::products) the only place with `unsafe`.
//! Instructions beyond what the binary is compiled for may only run where the machine has them, so
//! `Avx2` and [`Avx512`] are tokens: [`dispatch`] makes them, after asking the machine, and whatever
//! takes one may rely on it. Code generic over [`Simd`] must be `#[inline(always)]` down from
//! [`Vectorized::run`], so that it is compiled as part of a function that has these instructions.

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(super) use self::x86::Avx512;
use super::instructions::Instructions;

/// The upper bits of a word.
const HIGH_HALF: u32 = 0xffff_0000;

/// Vectors of one instruction set. The type is the proof that the machine has it.
pub(super) trait Simd: Copy {
    type Vector: Copy;

    /// Numbers in a vector.
    const LANES: usize;

    /// Vectors that registers hold.
    const REGISTERS: usize;

    fn splat(self, x: f32) -> Self::Vector;

    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `b` where `a` is no number.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a * b + c`, rounded once where the machine can.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;

    /// Each word's lower 16 bits, as the upper ones of a number.
    fn low_half(self, words: Self::Vector) -> Self::Vector;

    /// Each word's upper 16 bits.
    fn high_half(self, words: Self::Vector) -> Self::Vector;

    /// As many numbers as `from` has, zeros behind them; at most a vector.
    fn load(self, from: &[f32]) -> Self::Vector;

    /// As many numbers as `to` has room for; at most a vector.
    fn store(self, to: &mut [f32], vector: Self::Vector);

    /// Numbers that start at a multiple of a vector's size, and are a multiple of one.
    fn vectors(self, numbers: &[f32]) -> &[Self::Vector];
}

/// What is written once for all instruction sets.
pub(super) trait Vectorized {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `op` with the instructions that this process has chosen.
#[cfg(target_arch = "x86_64")]
pub(super) fn dispatch<Op: Vectorized>(op: Op) -> Op::Output {
    match Instructions::chosen() {
        // SAFETY: only what the machine has is chosen.
        Instructions::Avx512 | Instructions::Avx512Vnni | Instructions::Avx512Bf16 => unsafe {
            x86::with_avx512(op)
        },
        // SAFETY: as above.
        Instructions::Avx2 | Instructions::AvxVnni => unsafe { x86::with_avx2(op) },
        Instructions::Portable => op.run(Portable::<4>),
    }
}

/// Runs `op` with what every machine of this kind has; the compiler makes vectors of it.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn dispatch<Op: Vectorized>(op: Op) -> Op::Output {
    op.run(Portable::<4>)
}

/// Numbers in one vector of what [`dispatch`] chooses.
pub(super) fn lanes() -> usize {
    dispatch(Shape)[0]
}

/// Vector registers of what [`dispatch`] chooses.
pub(super) fn registers() -> usize {
    dispatch(Shape)[1]
}

/// Lanes and registers.
struct Shape;

impl Vectorized for Shape {
    type Output = [usize; 2];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [usize; 2] {
        [S::LANES, S::REGISTERS]
    }
}

/// `N` numbers, in plain code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable<const N: usize>;

impl<const N: usize> Simd for Portable<N> {
    type Vector = [f32; N];

    const LANES: usize = N;
    // Long vectors are those of machines with many.
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
    fn max(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i].max(b[i]))
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        // Where there is no such instruction, rounding once takes a library call.
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
    fn store(self, to: &mut [f32], vector: [f32; N]) {
        to.copy_from_slice(&vector[..to.len()]);
    }

    #[inline(always)]
    fn vectors(self, numbers: &[f32]) -> &[[f32; N]] {
        numbers.as_chunks().0
    }
}

/// `from`, and zeros behind it.
#[inline(always)]
fn filled<const N: usize>(from: &[f32]) -> [f32; N] {
    match from.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut numbers = [0.0; N];
            numbers[..from.len()].copy_from_slice(from);
            numbers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation, against plain arithmetic; numbers short enough for exact products.
    struct Check;

    impl Vectorized for Check {
        type Output = usize;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> usize {
            let numbers: Vec<f32> = (0..S::LANES).map(|i| i as f32 - 2.5).collect();
            for len in 0..=S::LANES {
                let vector = simd.load(&numbers[..len]);
                let rest = simd.sub(simd.add(vector, simd.splat(3.0)), simd.splat(2.0));
                let sum = simd.mul_add(vector, simd.splat(2.0), rest);
                let mut out = vec![f32::NAN; S::LANES];
                simd.store(&mut out, simd.max(sum, simd.splat(0.0)));
                for (i, out) in out.iter().enumerate() {
                    let x = if i < len { numbers[i] } else { 0.0 };
                    assert_eq!(*out, (3.0 * x + 1.0).max(0.0));
                }
                let mut part = vec![f32::NAN; len];
                simd.store(&mut part, vector);
                assert_eq!(part, numbers[..len]);
            }
            S::LANES
        }
    }

    #[test]
    fn operations_are_those_of_numbers() {
        assert_eq!(dispatch(Check), lanes());
        assert_eq!(Check.run(Portable::<4>), 4);
        assert_eq!(Check.run(Portable::<16>), 16);
    }

    #[test]
    fn what_is_no_number_gives_way() {
        let simd = Portable::<4>;
        assert_eq!(simd.max([f32::NAN; 4], [0.0; 4]), [0.0; 4]);
        struct NoNumber;
        impl Vectorized for NoNumber {
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                let mut out = vec![1.0; S::LANES];
                simd.store(&mut out, simd.max(simd.splat(f32::NAN), simd.splat(0.0)));
                assert_eq!(out, vec![0.0; S::LANES]);
            }
        }
        dispatch(NoNumber);
    }
}
