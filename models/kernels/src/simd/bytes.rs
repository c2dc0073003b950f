//! Sums of products of bytes, with the instructions of the machine the process runs on.
//!
//! A vector of weights holds four weights of each of its channels, an input four values; the four
//! products of a channel are added to its sum at once. Sums are exact, so all instruction sets give
//! the same.

/// Products of unsigned inputs and signed weights. A value of the type proves that the machine has
/// the instructions.
pub(crate) trait Bytes: Copy {
    /// One 32-bit sum for each channel.
    type Sums: Copy;
    /// Four weights for each channel.
    type Weights: Copy;
    /// Four inputs, for every channel.
    type Inputs: Copy;

    /// Channels of a vector.
    const LANES: usize;

    /// Vectors that fit into registers.
    const REGISTERS: usize;

    fn zero(self) -> Self::Sums;

    fn splat(self, inputs: [u8; 4]) -> Self::Inputs;

    /// `sums` plus the four products of each channel.
    fn add_products(
        self,
        sums: Self::Sums,
        inputs: Self::Inputs,
        weights: Self::Weights,
    ) -> Self::Sums;

    /// Writes as many sums as there are channels in a vector.
    fn store(self, to: &mut [i32], sums: Self::Sums);

    /// Views weights that start at a multiple of a vector's size, and are a multiple of one, as
    /// vectors.
    fn vectors(self, weights: &[i8]) -> &[Self::Weights];
}

/// Code that is written once for all instruction sets.
pub(crate) trait OnBytes {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run<B: Bytes>(self, bytes: B) -> Self::Output;
}

/// Four channels, in plain code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortableBytes;

impl Bytes for PortableBytes {
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
