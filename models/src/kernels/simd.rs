//! Vectors of `f32`, with the instructions of the machine the process runs on.
//!
//! This is the one module with `unsafe`. Instructions beyond what the binary is compiled for may
//! only run where the machine has them, so [`Avx2`] and [`Avx512`] are tokens: [`dispatch`] makes
//! them, after asking the machine, and whatever takes one may rely on it. Code generic over
//! [`Simd`] must be `#[inline(always)]` down from [`Vectorized::run`], so that it is compiled as
//! part of a function that has these instructions.

use super::instructions::Instructions;

/// Vectors of one instruction set. The type is the proof that the machine has it.
pub(super) trait Simd: Copy {
    type Vector: Copy;

    /// Numbers in a vector.
    const LANES: usize;

    /// Vectors that registers hold.
    const REGISTERS: usize;

    fn splat(self, x: f32) -> Self::Vector;

    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `b` where `a` is no number.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a * b + c`, rounded once where the machine can.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;

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
        Instructions::Avx512 | Instructions::Avx512Vnni => unsafe { x86::with_avx512(op) },
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Simd, Vectorized, filled};

    /// The machine has AVX2 and FMA.
    #[derive(Clone, Copy)]
    struct Avx2(());

    /// The machine has AVX-512 F.
    #[derive(Clone, Copy)]
    struct Avx512(());

    /// # Safety
    /// The machine has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn with_avx2<Op: Vectorized>(op: Op) -> Op::Output {
        op.run(Avx2(()))
    }

    /// # Safety
    /// The machine has AVX-512 F.
    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) fn with_avx512<Op: Vectorized>(op: Op) -> Op::Output {
        op.run(Avx512(()))
    }

    impl Avx2 {
        /// Fewer numbers than a vector has.
        #[inline(always)]
        fn load_part(self, from: &[f32]) -> __m256 {
            let numbers: [f32; 8] = filled(from);
            // SAFETY: the token, and the array has as many numbers as are read.
            unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
        }

        #[inline(always)]
        fn store_part(self, to: &mut [f32], vector: __m256) {
            let mut numbers = [0f32; 8];
            // SAFETY: the token, and the array has as much room as is written.
            unsafe { _mm256_storeu_ps(numbers.as_mut_ptr(), vector) };
            to.copy_from_slice(&numbers[..to.len()]);
        }
    }

    impl Avx512 {
        /// Fewer numbers than a vector has.
        #[inline(always)]
        fn load_part(self, from: &[f32]) -> __m512 {
            // SAFETY: the token; what the mask leaves out is not read.
            unsafe { _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()) }
        }

        #[inline(always)]
        fn store_part(self, to: &mut [f32], vector: __m512) {
            // SAFETY: the token; what the mask leaves out is not written.
            unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), vector) };
        }
    }

    /// The mask of a vector's first lanes; `count` is less than 16.
    #[inline(always)]
    fn first(count: usize) -> __mmask16 {
        assert!(count < 16, "a part of a vector");
        (1 << count) - 1
    }

    /// One instruction set: its token, vector, lanes, registers and instructions.
    macro_rules! instructions {
        ($token:ident, $vector:ident, $lanes:literal, $registers:literal, $splat:ident, $add:ident,
         $max:ident, $mul_add:ident, $load:ident, $store:ident) => {
            impl Simd for $token {
                type Vector = $vector;

                const LANES: usize = $lanes;
                const REGISTERS: usize = $registers;

                #[inline(always)]
                fn splat(self, x: f32) -> $vector {
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $splat(x) }
                }

                #[inline(always)]
                fn add(self, a: $vector, b: $vector) -> $vector {
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $add(a, b) }
                }

                #[inline(always)]
                fn max(self, a: $vector, b: $vector) -> $vector {
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $max(a, b) }
                }

                #[inline(always)]
                fn mul_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $mul_add(a, b, c) }
                }

                #[inline(always)]
                fn load(self, from: &[f32]) -> $vector {
                    match from.first_chunk::<$lanes>() {
                        // SAFETY: the token, and the array has as many numbers as are read; they
                        // need not be aligned.
                        Some(whole) => unsafe { $load(whole.as_ptr()) },
                        None => self.load_part(from),
                    }
                }

                #[inline(always)]
                fn store(self, to: &mut [f32], vector: $vector) {
                    match to.first_chunk_mut::<$lanes>() {
                        // SAFETY: the token, and the array has as much room as is written; it
                        // need not be aligned.
                        Some(whole) => unsafe { $store(whole.as_mut_ptr(), vector) },
                        None => self.store_part(to, vector),
                    }
                }

                #[inline(always)]
                fn vectors(self, numbers: &[f32]) -> &[$vector] {
                    // SAFETY: any bits are a vector of f32, and `align_to` sees to alignment.
                    let (before, vectors, _) = unsafe { numbers.align_to::<$vector>() };
                    assert!(before.is_empty(), "weights are aligned");
                    vectors
                }
            }
        };
    }

    instructions!(
        Avx2,
        __m256,
        8,
        16,
        _mm256_set1_ps,
        _mm256_add_ps,
        _mm256_max_ps,
        _mm256_fmadd_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps
    );
    instructions!(
        Avx512,
        __m512,
        16,
        32,
        _mm512_set1_ps,
        _mm512_add_ps,
        _mm512_max_ps,
        _mm512_fmadd_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps
    );
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
                let sum = simd.mul_add(vector, simd.splat(2.0), simd.add(vector, simd.splat(1.0)));
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
