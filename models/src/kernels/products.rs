//! What lies in a word of 32 bits of weights, and how a vector of words is multiplied: a number
//! each, or two rounded to bf16.
//!
//! With [`simd`](super::simd) and [`bytes`](super::bytes) the only place with `unsafe`. AVX-512
//! BF16 multiplies both numbers of a word at once, by such a word of inputs. Other instructions
//! widen the first numbers of a vector, which is a shift, then the second ones, and multiply each
//! by a whole number, which is an input rounded as well. Instructions round such sums differently,
//! and AVX-512 BF16 takes numbers below 2^-126 for 0: results agree but for that.

use super::instructions::Instructions;
use super::simd::{self, Simd, Vectorized};

/// A way to multiply words. The type is the proof that the machine has the instructions.
pub(super) trait Products: Copy {
    /// Of the sums.
    type Simd: Simd;

    /// What a word of weights is multiplied by.
    type Input: Copy;

    /// Products of a word, one after the other; an input has as many words.
    const STEPS: usize;

    fn simd(self) -> Self::Simd;

    /// Words of inputs.
    fn inputs(words: &[f32]) -> &[Self::Input];

    /// What a step multiplies of an input, for every channel.
    fn splat(self, input: Self::Input, step: usize) -> VectorOf<Self>;

    /// What a step multiplies of each word of weights.
    fn part(self, words: VectorOf<Self>, step: usize) -> VectorOf<Self>;

    /// `sums` and the products of a step.
    fn add_products(
        self,
        input: VectorOf<Self>,
        weights: VectorOf<Self>,
        sums: VectorOf<Self>,
    ) -> VectorOf<Self>;
}

/// A vector of words, or of sums.
pub(super) type VectorOf<P> = <<P as Products>::Simd as Simd>::Vector;

/// What is written once for all instruction sets.
pub(super) trait OnPairs {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run<P: Products>(self, products: P) -> Self::Output;
}

/// Words are numbers.
#[derive(Clone, Copy)]
pub(super) struct Singles<S>(pub(super) S);

/// Words of weights are pairs of bf16, widened in registers.
#[derive(Clone, Copy)]
pub(super) struct Widened<S>(pub(super) S);

/// Runs `op` on pairs of bf16 with the instructions that this process has chosen.
pub(super) fn dispatch<Op: OnPairs>(op: Op) -> Op::Output {
    match Instructions::chosen() {
        // SAFETY: only what the machine has is chosen.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512Bf16 => unsafe { x86::with_avx512_bf16(op) },
        _ => simd::dispatch(Widening(op)),
    }
}

/// Words of an input to two channels in bf16, of what [`dispatch`] chooses: one of both, or each its
/// own.
pub(super) fn steps() -> usize {
    struct Steps;
    impl OnPairs for Steps {
        type Output = usize;
        #[inline(always)]
        fn run<P: Products>(self, _: P) -> usize {
            P::STEPS
        }
    }
    dispatch(Steps)
}

/// Runs it with [`Widened`].
struct Widening<Op>(Op);

impl<Op: OnPairs> Vectorized for Widening<Op> {
    type Output = Op::Output;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Op::Output {
        self.0.run(Widened(simd))
    }
}

// === impl Singles ===

impl<S: Simd> Products for Singles<S> {
    type Simd = S;
    type Input = f32;

    const STEPS: usize = 1;

    #[inline(always)]
    fn simd(self) -> S {
        self.0
    }

    #[inline(always)]
    fn inputs(words: &[f32]) -> &[f32] {
        words
    }

    #[inline(always)]
    fn splat(self, input: f32, _: usize) -> S::Vector {
        self.0.splat(input)
    }

    #[inline(always)]
    fn part(self, words: S::Vector, _: usize) -> S::Vector {
        words
    }

    #[inline(always)]
    fn add_products(self, input: S::Vector, weights: S::Vector, sums: S::Vector) -> S::Vector {
        self.0.mul_add(input, weights, sums)
    }
}

// === impl Widened ===

impl<S: Simd> Products for Widened<S> {
    type Simd = S;
    type Input = [f32; 2];

    const STEPS: usize = 2;

    #[inline(always)]
    fn simd(self) -> S {
        self.0
    }

    #[inline(always)]
    fn inputs(words: &[f32]) -> &[[f32; 2]] {
        words.as_chunks().0
    }

    #[inline(always)]
    fn splat(self, input: [f32; 2], step: usize) -> S::Vector {
        self.0.splat(input[step])
    }

    #[inline(always)]
    fn part(self, words: S::Vector, step: usize) -> S::Vector {
        if step == 0 {
            self.0.low_half(words)
        } else {
            self.0.high_half(words)
        }
    }

    #[inline(always)]
    fn add_products(self, input: S::Vector, weights: S::Vector, sums: S::Vector) -> S::Vector {
        self.0.mul_add(input, weights, sums)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m512, __m512bh, _mm512_dpbf16_ps};
    use std::mem::transmute;

    use super::super::simd::{Avx512, Simd};
    use super::{OnPairs, Products};

    /// The machine has AVX-512 F and BF16.
    #[derive(Clone, Copy)]
    struct Avx512Bf16(Avx512);

    /// # Safety
    /// The machine has AVX-512 F and BF16, AVX2 and FMA.
    #[target_feature(enable = "avx512bf16,avx512f,avx2,fma")]
    pub(super) fn with_avx512_bf16<Op: OnPairs>(op: Op) -> Op::Output {
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
            // SAFETY: the token says that the machine has these instructions; vectors of one size
            // are the same bits, and any are pairs.
            unsafe {
                let [input, weights] = transmute::<[__m512; 2], [__m512bh; 2]>([input, weights]);
                _mm512_dpbf16_ps(sums, input, weights)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bf16;
    use super::super::simd::Portable;
    use super::*;

    /// Products and sums short enough to be exact.
    struct Check;

    impl OnPairs for Check {
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
    fn both_numbers_of_a_word_are_multiplied() {
        dispatch(Check);
        simd::dispatch(Widening(Check));
        Check.run(Widened(Portable::<4>));
        Check.run(Widened(Portable::<16>));
    }
}
