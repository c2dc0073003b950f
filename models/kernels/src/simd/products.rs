//! Products of 32-bit words of weights: a word holds one f32, or two values rounded to bf16.
//!
//! AVX-512 BF16 multiplies both values of a word at once, by such a word of inputs. Other
//! instructions widen the first values of a vector, which is a shift, then the second ones, and
//! multiply each by a whole f32, which is a rounded input. The instructions round such sums
//! differently, and AVX-512 BF16 takes values below 2^-126 for 0: apart from that, results agree.

use super::vectors::{Simd, Vectorized};

/// Multiplies words. A value of the type proves that the machine has the instructions.
pub(crate) trait Products: Copy {
    /// Vectors of the sums.
    type Simd: Simd;

    /// The factor of a word of weights.
    type Input: Copy;

    /// Products of a word, one after the other; an input has `STEPS` words.
    const STEPS: usize;

    fn simd(self) -> Self::Simd;

    /// Words of inputs.
    fn inputs(words: &[f32]) -> &[Self::Input];

    /// The part of an input that a step multiplies, for every channel.
    fn splat(self, input: Self::Input, step: usize) -> VectorOf<Self>;

    /// The part of each word of weights that a step multiplies.
    fn part(self, words: VectorOf<Self>, step: usize) -> VectorOf<Self>;

    /// `sums` plus the products of a step.
    fn add_products(
        self,
        input: VectorOf<Self>,
        weights: VectorOf<Self>,
        sums: VectorOf<Self>,
    ) -> VectorOf<Self>;
}

/// A vector of words, or of sums.
pub(crate) type VectorOf<P> = <<P as Products>::Simd as Simd>::Vector;

/// Code that is written once for all instruction sets.
pub(crate) trait OnPairs {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run<P: Products>(self, products: P) -> Self::Output;
}

/// A word is one f32.
#[derive(Clone, Copy)]
pub(crate) struct Singles<S>(pub(crate) S);

/// A word of weights is two bf16, widened in registers.
#[derive(Clone, Copy)]
pub(crate) struct Widened<S>(pub(crate) S);

/// Runs `Op` with [`Widened`].
pub(super) struct Widening<Op>(pub(super) Op);

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
