//! Runs operations with the instruction set that the process has chosen.
#![allow(
    unsafe_code,
    reason = "calls functions that are compiled for instructions beyond the target's, after asking \
              the machine"
)]

use super::bytes::{Bytes, OnBytes, PortableBytes};
use super::instructions::Instructions;
use super::products::{OnPairs, Products, Widening};
use super::vectors::{Portable, Simd, Vectorized};
#[cfg(target_arch = "x86_64")]
use super::x86;

/// Runs `op` on vectors of `f32`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn dispatch<Op: Vectorized>(op: Op) -> Op::Output {
    match Instructions::chosen() {
        // SAFETY: the machine has the chosen instructions.
        Instructions::Avx512 | Instructions::Avx512Vnni | Instructions::Avx512Bf16 => unsafe {
            x86::vectors::with_avx512(op)
        },
        // SAFETY: as above.
        Instructions::Avx2 | Instructions::AvxVnni => unsafe { x86::vectors::with_avx2(op) },
        Instructions::Portable => op.run(Portable::<4>),
    }
}

/// Runs `op` with the instructions that every machine of this kind has; the compiler vectorizes it.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn dispatch<Op: Vectorized>(op: Op) -> Op::Output {
    op.run(Portable::<4>)
}

/// Runs `op` on pairs of bf16.
pub(crate) fn dispatch_pairs<Op: OnPairs>(op: Op) -> Op::Output {
    match Instructions::chosen() {
        // SAFETY: the machine has the chosen instructions.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512Bf16 => unsafe { x86::products::with_avx512_bf16(op) },
        _ => dispatch(Widening(op)),
    }
}

/// Runs `op` on products of bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) fn dispatch_bytes<Op: OnBytes>(op: Op) -> Op::Output {
    match Instructions::chosen() {
        // SAFETY: the machine has the chosen instructions.
        Instructions::Avx512Vnni | Instructions::Avx512Bf16 => unsafe {
            x86::bytes::with_avx512_vnni(op)
        },
        // SAFETY: as above.
        Instructions::AvxVnni => unsafe { x86::bytes::with_avx_vnni(op) },
        // SAFETY: as above; AVX-512 without products of bytes has AVX2.
        Instructions::Avx512 | Instructions::Avx2 => unsafe { x86::bytes::with_avx2(op) },
        Instructions::Portable => op.run(PortableBytes),
    }
}

/// Runs `op` with the instructions that every machine of this kind has.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn dispatch_bytes<Op: OnBytes>(op: Op) -> Op::Output {
    op.run(PortableBytes)
}

/// Values in one vector of [`dispatch`].
pub(crate) fn lanes() -> usize {
    dispatch(VectorShape)[0]
}

/// Vector registers of [`dispatch`].
pub(crate) fn registers() -> usize {
    dispatch(VectorShape)[1]
}

/// Channels of a vector, and vector registers, of [`dispatch_bytes`].
pub(crate) fn byte_shape() -> [usize; 2] {
    dispatch_bytes(VectorShape)
}

/// Words of an input to two channels in bf16, for the instructions of [`dispatch_pairs`]: 1 that
/// holds both, or 2 with one each.
pub(crate) fn pair_steps() -> usize {
    dispatch_pairs(PairSteps)
}

/// Lanes and registers.
struct VectorShape;

impl Vectorized for VectorShape {
    type Output = [usize; 2];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [usize; 2] {
        [S::LANES, S::REGISTERS]
    }
}

impl OnBytes for VectorShape {
    type Output = [usize; 2];

    #[inline(always)]
    fn run<B: Bytes>(self, _: B) -> [usize; 2] {
        [B::LANES, B::REGISTERS]
    }
}

/// Products of a word of weights.
struct PairSteps;

impl OnPairs for PairSteps {
    type Output = usize;

    #[inline(always)]
    fn run<P: Products>(self, _: P) -> usize {
        P::STEPS
    }
}

#[cfg(test)]
mod tests {
    use super::super::products::Widened;
    use super::*;
    use crate::bf16;

    /// Every operation, compared with plain arithmetic; values short enough for exact products.
    struct CheckVectors;

    impl Vectorized for CheckVectors {
        type Output = usize;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> usize {
            let values: Vec<f32> = (0..S::LANES).map(|i| i as f32 - 2.5).collect();
            for len in 0..=S::LANES {
                let mut last = vec![f32::NAN; S::LANES];
                simd.store(&mut last, simd.load_last(&values[..len]));
                assert_eq!(last[S::LANES - len..], values[..len]);
                assert!(last[..S::LANES - len].iter().all(|x| *x == 0.0));
                let vector = simd.load(&values[..len]);
                let rest = simd.sub(simd.add(vector, simd.splat(3.0)), simd.splat(2.0));
                let sum = simd.mul_add(vector, simd.splat(2.0), rest);
                let mut out = vec![f32::NAN; S::LANES];
                simd.store(&mut out, simd.max(sum, simd.splat(0.0)));
                for (i, out) in out.iter().enumerate() {
                    let x = if i < len { values[i] } else { 0.0 };
                    assert_eq!(*out, (3.0 * x + 1.0).max(0.0));
                }
                let mut part = vec![f32::NAN; len];
                simd.store(&mut part, vector);
                assert_eq!(part, values[..len]);
            }
            S::LANES
        }
    }

    #[test]
    fn vector_operations_are_plain_arithmetic() {
        assert_eq!(dispatch(CheckVectors), lanes());
        assert_eq!(CheckVectors.run(Portable::<4>), 4);
        assert_eq!(CheckVectors.run(Portable::<16>), 16);
    }

    #[test]
    fn the_second_value_counts_if_either_is_nan() {
        let simd = Portable::<4>;
        assert_eq!(simd.max([f32::NAN; 4], [0.0; 4]), [0.0; 4]);
        assert!(simd.max([0.0; 4], [f32::NAN; 4])[0].is_nan());
        struct MaxOfNan;
        impl Vectorized for MaxOfNan {
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                let mut out = vec![1.0; S::LANES];
                simd.store(&mut out, simd.max(simd.splat(f32::NAN), simd.splat(0.0)));
                assert_eq!(out, vec![0.0; S::LANES]);
                simd.store(&mut out, simd.max(simd.splat(0.0), simd.splat(f32::NAN)));
                assert!(out.iter().all(|x| x.is_nan()));
            }
        }
        dispatch(MaxOfNan);
    }

    /// Products and sums that are exact in f32.
    struct CheckPairs;

    impl OnPairs for CheckPairs {
        type Output = ();

        #[inline(always)]
        fn run<P: Products>(self, products: P) {
            let simd = products.simd();
            let lanes = P::Simd::LANES;
            let first = |lane: usize| lane as f32 - 3.0;
            let second = |lane: usize| 0.5 - lane as f32;
            let words: Vec<f32> = (0..lanes)
                .map(|lane| bf16::pair(first(lane), second(lane)))
                .collect();
            let weights = simd.load(&words);
            let input = match P::STEPS {
                1 => vec![bf16::pair(-2.0, 0.25)],
                _ => vec![-2.0, 0.25],
            };
            let input = P::inputs(&input)[0];
            let mut sums = simd.splat(10.0);
            for step in 0..P::STEPS {
                let (input, part) = (products.splat(input, step), products.part(weights, step));
                sums = products.add_products(input, part, sums);
            }
            let mut out = vec![0.0; lanes];
            simd.store(&mut out, sums);
            for (lane, out) in out.into_iter().enumerate() {
                let expected = 10.0 - 2.0 * first(lane) + 0.25 * second(lane);
                assert_eq!(out, expected, "{lane}");
            }
        }
    }

    #[test]
    fn both_values_of_a_word_are_multiplied() {
        dispatch_pairs(CheckPairs);
        dispatch(Widening(CheckPairs));
        CheckPairs.run(Widened(Portable::<4>));
        CheckPairs.run(Widened(Portable::<16>));
    }
}
