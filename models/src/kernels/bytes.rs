//! Sums of products of bytes, with the instructions of the machine the process runs on.
//!
//! As [`simd`](super::simd), and with it the only place with `unsafe`. A vector of weights holds
//! four weights of each of its channels, an input four numbers; the four products of a channel are
//! added to its sum at once. Sums are exact, so all instructions give the same.

use super::instructions::Instructions;

/// Products of unsigned inputs and signed weights. The type is the proof that the machine has the
/// instructions.
pub(super) trait Bytes: Copy {
    /// One 32-bit sum for each channel.
    type Sums: Copy;
    /// Four weights for each channel.
    type Weights: Copy;
    /// Four inputs, for every channel.
    type Inputs: Copy;

    /// Channels of a vector.
    const LANES: usize;

    /// Vectors that registers hold.
    const REGISTERS: usize;

    fn zero(self) -> Self::Sums;

    fn splat(self, inputs: [u8; 4]) -> Self::Inputs;

    /// `sums` and the four products of each channel.
    fn add_products(
        self,
        sums: Self::Sums,
        inputs: Self::Inputs,
        weights: Self::Weights,
    ) -> Self::Sums;

    /// Writes as many sums as there are channels in a vector.
    fn store(self, to: &mut [i32], sums: Self::Sums);

    /// Weights that start at a multiple of a vector's size, and are a multiple of one.
    fn vectors(self, weights: &[i8]) -> &[Self::Weights];
}

/// What is written once for all instruction sets.
pub(super) trait OnBytes {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run<B: Bytes>(self, bytes: B) -> Self::Output;
}

/// Runs `op` with the instructions that this process has chosen.
#[cfg(target_arch = "x86_64")]
pub(super) fn dispatch<Op: OnBytes>(op: Op) -> Op::Output {
    match Instructions::chosen() {
        // SAFETY: only what the machine has is chosen.
        Instructions::Avx512Vnni | Instructions::Avx512Bf16 => unsafe { x86::with_avx512_vnni(op) },
        // SAFETY: as above.
        Instructions::AvxVnni => unsafe { x86::with_avx_vnni(op) },
        // SAFETY: as above; AVX-512 without products of bytes has AVX2.
        Instructions::Avx512 | Instructions::Avx2 => unsafe { x86::with_avx2(op) },
        Instructions::Portable => op.run(Portable),
    }
}

/// Runs `op` with what every machine of this kind has.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn dispatch<Op: OnBytes>(op: Op) -> Op::Output {
    op.run(Portable)
}

/// Channels of a vector, and vector registers, of what [`dispatch`] chooses.
pub(super) fn shape() -> [usize; 2] {
    struct Shape;
    impl OnBytes for Shape {
        type Output = [usize; 2];
        #[inline(always)]
        fn run<B: Bytes>(self, _: B) -> [usize; 2] {
            [B::LANES, B::REGISTERS]
        }
    }
    dispatch(Shape)
}

/// Four channels, in plain code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Bytes for Portable {
    type Sums = [i32; 4];
    type Weights = [[i8; 4]; 4];
    type Inputs = [u8; 4];

    const LANES: usize = 4;
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn zero(self) -> [i32; 4] {
        [0; 4]
    }

    #[inline(always)]
    fn splat(self, inputs: [u8; 4]) -> [u8; 4] {
        inputs
    }

    #[inline(always)]
    fn add_products(self, sums: [i32; 4], inputs: [u8; 4], weights: [[i8; 4]; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let products = inputs.iter().zip(weights[lane]);
            let products = products.map(|(input, weight)| i32::from(*input) * i32::from(weight));
            products.fold(sums[lane], i32::wrapping_add)
        })
    }

    #[inline(always)]
    fn store(self, to: &mut [i32], sums: [i32; 4]) {
        to.copy_from_slice(&sums);
    }

    #[inline(always)]
    fn vectors(self, weights: &[i8]) -> &[[[i8; 4]; 4]] {
        weights.as_chunks().0.as_chunks().0
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Bytes, OnBytes};

    /// The machine has AVX2.
    #[derive(Clone, Copy)]
    struct Avx2(());

    /// The machine has AVX2 and AVX-VNNI.
    #[derive(Clone, Copy)]
    struct AvxVnni(());

    /// The machine has AVX-512 F, BW and VNNI.
    #[derive(Clone, Copy)]
    struct Avx512Vnni(());

    /// # Safety
    /// The machine has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn with_avx2<Op: OnBytes>(op: Op) -> Op::Output {
        op.run(Avx2(()))
    }

    /// # Safety
    /// The machine has AVX2, FMA and AVX-VNNI.
    #[target_feature(enable = "avx2,fma,avxvnni")]
    pub(super) fn with_avx_vnni<Op: OnBytes>(op: Op) -> Op::Output {
        op.run(AvxVnni(()))
    }

    /// # Safety
    /// The machine has AVX-512 F, BW and VNNI, AVX2 and FMA.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma")]
    pub(super) fn with_avx512_vnni<Op: OnBytes>(op: Op) -> Op::Output {
        op.run(Avx512Vnni(()))
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

    /// In 32 bits throughout: the instruction that multiplies bytes saturates at 16.
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
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $zero() }
                }

                #[inline(always)]
                fn splat(self, inputs: [u8; 4]) -> $inputs {
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $splat(i32::from_le_bytes(inputs)) }
                }

                #[inline(always)]
                fn add_products(self, sums: $vector, inputs: $inputs, weights: $vector) -> $vector {
                    // SAFETY: the token says that the machine has these instructions.
                    unsafe { $add_products(sums, inputs, weights) }
                }

                #[inline(always)]
                fn store(self, to: &mut [i32], sums: $vector) {
                    let to: &mut [i32; $lanes] = to.try_into().expect("room for a vector");
                    // SAFETY: the token, and the array has as much room as is written; it need
                    // not be aligned.
                    unsafe { $store(to.as_mut_ptr().cast(), sums) };
                }

                #[inline(always)]
                fn vectors(self, weights: &[i8]) -> &[$vector] {
                    // SAFETY: any bits are a vector of bytes, and `align_to` sees to alignment.
                    let (before, vectors, _) = unsafe { weights.align_to::<$vector>() };
                    assert!(before.is_empty(), "weights are aligned");
                    vectors
                }
            }
        };
    }

    instructions!(
        Avx2,
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
        AvxVnni,
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
        Avx512Vnni,
        __m512i,
        16,
        32,
        __m512i,
        _mm512_setzero_si512,
        _mm512_storeu_si512,
        _mm512_set1_epi32,
        _mm512_dpbusd_epi32
    );
}
