//! Products of pairs of bf16 with AVX-512 BF16.

use std::arch::x86_64::{__m512, __m512bh, _mm512_dpbf16_ps};
use std::mem::transmute;

use super::super::products::{OnPairs, Products};
use super::super::vectors::Simd;
use super::vectors::Avx512;

/// The machine has AVX-512 F and BF16.
#[derive(Clone, Copy)]
struct Avx512Bf16(Avx512);

/// # Safety
/// The machine has AVX-512 F and BF16, AVX2 and FMA.
#[target_feature(enable = "avx512bf16,avx512f,avx2,fma")]
pub(in super::super) fn with_avx512_bf16<Op: OnPairs>(op: Op) -> Op::Output {
    op.run(Avx512Bf16(Avx512::new()))
}

impl Products for Avx512Bf16 {
    type Simd = Avx512;
    type Input = f32;

    const STEPS: usize = 1;

    #[inline(always)]
    fn simd(self) -> Avx512 {
        self.0
    }

    #[inline(always)]
    fn inputs(words: &[f32]) -> &[f32] {
        words
    }

    #[inline(always)]
    fn splat(self, input: f32, _: usize) -> __m512 {
        self.0.splat(input)
    }

    #[inline(always)]
    fn part(self, words: __m512, _: usize) -> __m512 {
        words
    }

    #[inline(always)]
    fn add_products(self, input: __m512, weights: __m512, sums: __m512) -> __m512 {
        // SAFETY: the token proves that the machine has these instructions; vectors of one size
        // are the same bits, and any bits are pairs.
        unsafe {
            let [input, weights] = transmute::<[__m512; 2], [__m512bh; 2]>([input, weights]);
            _mm512_dpbf16_ps(sums, input, weights)
        }
    }
}
