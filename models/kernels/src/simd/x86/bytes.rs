//! Products of bytes with AVX2, AVX-VNNI and AVX-512 VNNI.

use std::arch::x86_64::*;

use super::super::bytes::{Bytes, OnBytes};

/// The machine has AVX2.
#[derive(Clone, Copy)]
struct Avx2Bytes(());

/// The machine has AVX2 and AVX-VNNI.
#[derive(Clone, Copy)]
struct AvxVnniBytes(());

/// The machine has AVX-512 F, BW and VNNI.
#[derive(Clone, Copy)]
struct Avx512VnniBytes(());

/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(in super::super) fn with_avx2<Op: OnBytes>(op: Op) -> Op::Output {
    op.run(Avx2Bytes(()))
}

/// # Safety
/// The machine has AVX2, FMA and AVX-VNNI.
#[target_feature(enable = "avx2,fma,avxvnni")]
pub(in super::super) fn with_avx_vnni<Op: OnBytes>(op: Op) -> Op::Output {
    op.run(AvxVnniBytes(()))
}

/// # Safety
/// The machine has AVX-512 F, BW and VNNI, AVX2 and FMA.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
pub(in super::super) fn with_avx512_vnni<Op: OnBytes>(op: Op) -> Op::Output {
    op.run(Avx512VnniBytes(()))
}

/// Even and odd bytes, widened to 16 bits.
type Halves = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn splat_halves(inputs: i32) -> Halves {
    let bytes = _mm256_set1_epi32(inputs);
    let even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xff));
    [even, _mm256_srli_epi16::<8>(bytes)]
}

/// In 32 bits throughout: the instruction that multiplies bytes saturates at 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add_products_of_halves(sums: __m256i, inputs: Halves, weights: __m256i) -> __m256i {
    let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(weights));
    let odd = _mm256_srai_epi16::<8>(weights);
    let even = _mm256_madd_epi16(inputs[0], even);
    let odd = _mm256_madd_epi16(inputs[1], odd);
    _mm256_add_epi32(sums, _mm256_add_epi32(even, odd))
}

/// One instruction set: its token, vector, lanes, registers and inputs, and how these are made
/// and multiplied.
macro_rules! instructions {
    ($token:ident, $vector:ident, $lanes:literal, $registers:literal, $inputs:ty, $zero:ident,
     $store:ident, $splat:ident, $add_products:ident) => {
        impl Bytes for $token {
            type Sums = $vector;
            type Weights = $vector;
            type Inputs = $inputs;

            const LANES: usize = $lanes;
            const REGISTERS: usize = $registers;

            #[inline(always)]
            fn zero(self) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $zero() }
            }

            #[inline(always)]
            fn splat(self, inputs: [u8; 4]) -> $inputs {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $splat(i32::from_le_bytes(inputs)) }
            }

            #[inline(always)]
            fn add_products(self, sums: $vector, inputs: $inputs, weights: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $add_products(sums, inputs, weights) }
            }

            #[inline(always)]
            fn store(self, to: &mut [i32], sums: $vector) {
                let to: &mut [i32; $lanes] = to.try_into().expect("room for a vector");
                // SAFETY: the token, and the array has as much room as is written; it need not
                // be aligned.
                unsafe { $store(to.as_mut_ptr().cast(), sums) };
            }

            #[inline(always)]
            fn vectors(self, weights: &[i8]) -> &[$vector] {
                // SAFETY: any bits are a vector of bytes, and `align_to` takes care of
                // alignment.
                let (before, vectors, _) = unsafe { weights.align_to::<$vector>() };
                assert!(before.is_empty(), "weights are aligned");
                vectors
            }
        }
    };
}

instructions!(
    Avx2Bytes,
    __m256i,
    8,
    16,
    Halves,
    _mm256_setzero_si256,
    _mm256_storeu_si256,
    splat_halves,
    add_products_of_halves
);
instructions!(
    AvxVnniBytes,
    __m256i,
    8,
    16,
    __m256i,
    _mm256_setzero_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi32,
    _mm256_dpbusd_avx_epi32
);
instructions!(
    Avx512VnniBytes,
    __m512i,
    16,
    32,
    __m512i,
    _mm512_setzero_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    _mm512_dpbusd_epi32
);
