//! Vectors of AVX2 and of AVX-512.

use std::arch::x86_64::*;

use super::super::vectors::{
    EXPONENT, HIGH_HALF, LEAST_MANTISSA, MANTISSA_BITS, Simd, Vectorized, filled,
};

/// The machine has AVX2 and FMA.
#[derive(Clone, Copy)]
struct Avx2(());

/// The machine has AVX-512 F.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(in super::super) fn with_avx2<Op: Vectorized>(op: Op) -> Op::Output {
    op.run(Avx2(()))
}

/// # Safety
/// The machine has AVX-512 F.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(in super::super) fn with_avx512<Op: Vectorized>(op: Op) -> Op::Output {
    op.run(Avx512::new())
}

impl Avx2 {
    /// Loads fewer values than a vector has.
    #[inline(always)]
    fn load_part(self, from: &[f32]) -> __m256 {
        let values: [f32; 8] = filled(from);
        // SAFETY: the token, and the array has as many values as are read.
        unsafe { _mm256_loadu_ps(values.as_ptr()) }
    }

    #[inline(always)]
    fn load_last_part(self, from: &[f32]) -> __m256 {
        let mut values = [0f32; 8];
        values[8 - from.len()..].copy_from_slice(from);
        // SAFETY: the token, and the array has as many values as are read.
        unsafe { _mm256_loadu_ps(values.as_ptr()) }
    }

    #[inline(always)]
    fn store_part(self, to: &mut [f32], vector: __m256) {
        let mut values = [0f32; 8];
        // SAFETY: the token, and the array has as much room as is written.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) };
        to.copy_from_slice(&values[..to.len()]);
    }
}

impl Avx512 {
    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) fn new() -> Self {
        Self(())
    }

    /// Loads fewer values than a vector has.
    #[inline(always)]
    fn load_part(self, from: &[f32]) -> __m512 {
        // SAFETY: the token; the mask leaves the rest unread.
        unsafe { _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn load_last_part(self, from: &[f32]) -> __m512 {
        let outside = 16 - from.len();
        // `from` may be empty.
        let mask = (u32::from(u16::MAX) << outside) as __mmask16;
        // SAFETY: the token; the mask leaves the lanes in front of the values unread.
        unsafe { _mm512_maskz_loadu_ps(mask, from.as_ptr().wrapping_sub(outside)) }
    }

    #[inline(always)]
    fn store_part(self, to: &mut [f32], vector: __m512) {
        // SAFETY: the token; the mask leaves the rest unwritten.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), vector) };
    }
}

/// The mask of a vector's first lanes; `count` is less than 16.
#[inline(always)]
fn first(count: usize) -> __mmask16 {
    assert!(count < 16, "a part of a vector");
    (1 << count) - 1
}

#[inline]
#[target_feature(enable = "avx2")]
fn low_256(words: __m256) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(words)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn high_256(words: __m256) -> __m256 {
    _mm256_and_ps(words, _mm256_set1_ps(f32::from_bits(HIGH_HALF)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn low_512(words: __m512) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_castps_si512(words)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn high_512(words: __m512) -> __m512 {
    let mask = _mm512_set1_epi32(HIGH_HALF.cast_signed());
    _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), mask))
}

#[inline]
#[target_feature(enable = "avx2")]
fn power_256(shifted: __m256) -> __m256 {
    let exponent = _mm256_set1_epi32(EXPONENT.cast_signed());
    let bits = _mm256_add_epi32(_mm256_castps_si256(shifted), exponent);
    _mm256_castsi256_ps(_mm256_slli_epi32::<{ MANTISSA_BITS.cast_signed() }>(bits))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn power_512(shifted: __m512) -> __m512 {
    let exponent = _mm512_set1_epi32(EXPONENT.cast_signed());
    let bits = _mm512_add_epi32(_mm512_castps_si512(shifted), exponent);
    _mm512_castsi512_ps(_mm512_slli_epi32::<MANTISSA_BITS>(bits))
}

#[inline]
#[target_feature(enable = "avx2")]
fn split_256(x: __m256) -> [__m256; 2] {
    const SHIFT: i32 = MANTISSA_BITS.cast_signed();
    let bits = _mm256_castps_si256(x);
    let least = _mm256_set1_epi32(LEAST_MANTISSA.cast_signed());
    let exponent = _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(bits, least));
    let mantissa = _mm256_sub_epi32(bits, _mm256_slli_epi32::<SHIFT>(exponent));
    [_mm256_castsi256_ps(mantissa), _mm256_cvtepi32_ps(exponent)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn split_512(x: __m512) -> [__m512; 2] {
    let bits = _mm512_castps_si512(x);
    let least = _mm512_set1_epi32(LEAST_MANTISSA.cast_signed());
    let exponent = _mm512_srai_epi32::<MANTISSA_BITS>(_mm512_sub_epi32(bits, least));
    let mantissa = _mm512_sub_epi32(bits, _mm512_slli_epi32::<MANTISSA_BITS>(exponent));
    [_mm512_castsi512_ps(mantissa), _mm512_cvtepi32_ps(exponent)]
}

/// One instruction set: its token, vector, lanes, registers and instructions.
macro_rules! instructions {
    ($token:ident, $vector:ident, $lanes:literal, $registers:literal, $splat:ident, $add:ident,
     $sub:ident, $mul:ident, $div:ident, $max:ident, $min:ident, $power:ident, $split:ident,
     $mul_add:ident, $low:ident, $high:ident, $load:ident, $store:ident) => {
        impl Simd for $token {
            type Vector = $vector;

            const LANES: usize = $lanes;
            const REGISTERS: usize = $registers;

            #[inline(always)]
            fn splat(self, x: f32) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $splat(x) }
            }

            #[inline(always)]
            fn add(self, a: $vector, b: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $add(a, b) }
            }

            #[inline(always)]
            fn sub(self, a: $vector, b: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $sub(a, b) }
            }

            #[inline(always)]
            fn mul(self, a: $vector, b: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $mul(a, b) }
            }

            #[inline(always)]
            fn div(self, a: $vector, b: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $div(a, b) }
            }

            #[inline(always)]
            fn max(self, a: $vector, b: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $max(a, b) }
            }

            #[inline(always)]
            fn min(self, a: $vector, b: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $min(a, b) }
            }

            #[inline(always)]
            fn power_of_two(self, shifted: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $power(shifted) }
            }

            #[inline(always)]
            fn mantissa_and_exponent(self, x: $vector) -> [$vector; 2] {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $split(x) }
            }

            #[inline(always)]
            fn mul_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $mul_add(a, b, c) }
            }

            #[inline(always)]
            fn low_half(self, words: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $low(words) }
            }

            #[inline(always)]
            fn high_half(self, words: $vector) -> $vector {
                // SAFETY: the token proves that the machine has these instructions.
                unsafe { $high(words) }
            }

            #[inline(always)]
            fn load(self, from: &[f32]) -> $vector {
                match from.first_chunk::<$lanes>() {
                    // SAFETY: the token, and the array has as many values as are read; they need
                    // not be aligned.
                    Some(whole) => unsafe { $load(whole.as_ptr()) },
                    None => self.load_part(from),
                }
            }

            #[inline(always)]
            fn load_last(self, from: &[f32]) -> $vector {
                match from.last_chunk::<$lanes>() {
                    Some(whole) => self.load(whole),
                    None => self.load_last_part(from),
                }
            }

            #[inline(always)]
            fn store(self, to: &mut [f32], vector: $vector) {
                match to.first_chunk_mut::<$lanes>() {
                    // SAFETY: the token, and the array has as much room as is written; it need not
                    // be aligned.
                    Some(whole) => unsafe { $store(whole.as_mut_ptr(), vector) },
                    None => self.store_part(to, vector),
                }
            }

            #[inline(always)]
            fn prefetch(self, vector: &$vector) {
                // SAFETY: every x86-64 machine has the instruction, which never faults.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(vector).cast()) };
            }

            #[inline(always)]
            fn vectors(self, values: &[f32]) -> &[$vector] {
                // SAFETY: any bits are a vector of f32, and `align_to` takes care of alignment.
                let (before, vectors, _) = unsafe { values.align_to::<$vector>() };
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
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_div_ps,
    _mm256_max_ps,
    _mm256_min_ps,
    power_256,
    split_256,
    _mm256_fmadd_ps,
    low_256,
    high_256,
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
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_div_ps,
    _mm512_max_ps,
    _mm512_min_ps,
    power_512,
    split_512,
    _mm512_fmadd_ps,
    low_512,
    high_512,
    _mm512_loadu_ps,
    _mm512_storeu_ps
);
