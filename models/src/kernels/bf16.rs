//! Numbers rounded to bf16, the upper half of a number's bits, and pictures of them.
//!
//! Two lie in the bits of one word, neighbouring channels of a position; behind an odd last
//! channel there is a zero. So a word is never of two positions: a zero weight would not keep
//! what is infinite in one out of the sum of another.
//!
//! Where no instruction multiplies such words, each number of a picture has one of its own.

use super::Map;
use super::scratch::Buffer;
use super::simd::{Simd, Vectorized, dispatch};
use crate::unfold2d::Padding;

/// Up to here numbers are rounded to finite ones.
pub(crate) const LARGEST: f32 = f32::from_bits(0x7f7f_7fff);

/// Numbers of a word.
pub(super) const PAIR: usize = 2;

/// The bits of a number rounded to the nearest of 8 bits of precision, ties to even; what is none
/// stays none.
#[inline(always)]
fn round(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_nan() {
        // Quiet: or the upper half might be that of an infinite number.
        return (bits | 0x0040_0000) >> 16;
    }
    // All finite numbers and infinity are far below an overflow.
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16
}

/// A word of two numbers. Not a number itself: it is only moved.
#[inline(always)]
pub(super) fn pair(first: f32, second: f32) -> f32 {
    f32::from_bits(round(first) | round(second) << 16)
}

/// A rounded number.
#[inline(always)]
fn single(x: f32) -> f32 {
    f32::from_bits(round(x) << 16)
}

/// Words of pairs of a position with this many channels.
pub(super) fn words(channels: usize) -> usize {
    channels.div_ceil(PAIR)
}

/// Rounds pictures and puts zeros around them: `[pictures, lines, columns, words * steps]`, pairs
/// in one step and single numbers in two; returns their lines and columns too.
pub(super) fn rounded(x: &Map, padding: Padding, steps: usize) -> (Buffer, [usize; 2]) {
    let [pictures, height, width, channels] = x.dims();
    let size = [
        padding.top + height + padding.bottom,
        padding.left + width + padding.right,
    ];
    let words = words(channels) * steps;
    let mut to = Buffer::take(pictures * size[0] * size[1] * words);
    dispatch(Round {
        x,
        to: &mut to,
        padding,
        size,
        words,
        steps,
    });
    (to, size)
}

/// Numbers to words.
struct Round<'a> {
    x: &'a Map,
    to: &'a mut [f32],
    padding: Padding,
    size: [usize; 2],
    /// Of a position.
    words: usize,
    steps: usize,
}

impl Vectorized for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let [_, height, width, channels] = self.x.dims();
        let words = self.words;
        let line = self.size[1] * words;
        let (left, inside) = (self.padding.left * words, width * words);
        for (to, from) in self
            .to
            .chunks_exact_mut((self.size[0] * line).max(1))
            .zip(self.x.numbers.chunks_exact(self.x.picture_len().max(1)))
        {
            let (top, rest) = to.split_at_mut(self.padding.top * line);
            let (middle, bottom) = rest.split_at_mut(height * line);
            top.fill(0.0);
            bottom.fill(0.0);
            for (to, from) in middle
                .chunks_exact_mut(line.max(1))
                .zip(from.chunks_exact((width * channels).max(1)))
            {
                let (before, to) = to.split_at_mut(left);
                let (to, behind) = to.split_at_mut(inside);
                before.fill(0.0);
                match self.steps {
                    1 => round_pairs(from, to, channels),
                    _ => round_singles(from, to, channels),
                }
                behind.fill(0.0);
            }
        }
    }
}

/// Positions one after the other.
#[inline(always)]
fn round_pairs(from: &[f32], to: &mut [f32], channels: usize) {
    if channels.is_multiple_of(PAIR) {
        for ([first, second], to) in from.as_chunks().0.iter().zip(to) {
            *to = pair(*first, *second);
        }
        return;
    }
    let positions = from.chunks_exact(channels);
    for (from, to) in positions.zip(to.chunks_exact_mut(words(channels))) {
        for (from, to) in from.chunks(PAIR).zip(to) {
            *to = pair(from[0], from.get(1).copied().unwrap_or_default());
        }
    }
}

/// The same for [`single`] numbers.
#[inline(always)]
fn round_singles(from: &[f32], to: &mut [f32], channels: usize) {
    if channels.is_multiple_of(PAIR) {
        for (from, to) in from.iter().zip(to) {
            *to = single(*from);
        }
        return;
    }
    let positions = from.chunks_exact(channels);
    for (from, to) in positions.zip(to.chunks_exact_mut(channels + 1)) {
        for (from, to) in from.iter().zip(&mut *to) {
            *to = single(*from);
        }
        to[channels] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{DType, Device, Tensor};

    use super::*;

    /// The first number of a word, and the second.
    fn halves(word: f32) -> [f32; 2] {
        let bits = word.to_bits();
        [bits << 16, bits & 0xffff_0000].map(f32::from_bits)
    }

    fn rounded_one(x: f32) -> f32 {
        halves(pair(x, 0.0))[0]
    }

    #[test]
    fn numbers_go_to_the_nearest() {
        let normal = Tensor::randn(0f32, 1.0, 1000, &Device::Cpu).unwrap();
        let theirs = normal.to_dtype(DType::BF16).unwrap();
        let theirs = theirs.to_dtype(DType::F32).unwrap().to_vec1::<f32>();
        let ours = normal.to_vec1::<f32>().unwrap();
        let ours = ours.into_iter().map(rounded_one);
        assert_eq!(ours.collect::<Vec<f32>>(), theirs.unwrap());
        // Ties go to the even one, and a word's second number is as the first.
        assert_eq!(rounded_one(1.0 + 2f32.powi(-8)), 1.0);
        assert_eq!(rounded_one(1.0 + 3.0 * 2f32.powi(-8)), 1.0 + 2f32.powi(-6));
        assert_eq!(
            halves(pair(-3.0, 1.0 + 2f32.powi(-7))),
            [-3.0, 1.0 + 2f32.powi(-7)]
        );
    }

    #[test]
    fn what_is_no_number_stays_none_and_what_is_finite_becomes_none() {
        for bits in [
            0x7f80_0001,
            0x7fc0_0000,
            0xff80_ffff,
            0xffff_ffff,
            0x7fff_ffff,
        ] {
            assert!(rounded_one(f32::from_bits(bits)).is_nan(), "{bits:x}");
        }
        for infinite in [f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(rounded_one(infinite), infinite);
        }
        assert!(rounded_one(LARGEST).is_finite());
        assert_eq!(rounded_one(LARGEST.next_up()), f32::INFINITY);
        assert_eq!(rounded_one(f32::MIN), f32::NEG_INFINITY);
        assert_eq!(rounded_one(-0.0).to_bits(), (-0f32).to_bits());
    }

    #[test]
    fn pictures_have_zeros_around_them_and_behind_odd_channels() {
        for channels in [1, 2, 3, 34] {
            let x = Tensor::randn(0f32, 1.0, (2, 3, 5, channels), &Device::Cpu).unwrap();
            let map = Map::of(&x, [2, 3, 5, channels]).unwrap();
            let padding = Padding {
                top: 1,
                left: 2,
                bottom: 0,
                right: 1,
            };
            let even = channels.next_multiple_of(PAIR);
            let expected = x.to_dtype(DType::BF16).unwrap();
            let expected = expected.to_dtype(DType::F32).unwrap();
            let expected = expected.pad_with_zeros(3, 0, even - channels).unwrap();
            let expected = expected.pad_with_zeros(2, 2, 1).unwrap();
            let expected = expected.pad_with_zeros(1, 1, 0).unwrap();
            let expected = expected.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let (pairs, size) = rounded(&map, padding, 1);
            assert_eq!(size, [4, 8]);
            let pairs = pairs.iter().copied().flat_map(halves);
            assert_eq!(pairs.collect::<Vec<f32>>(), expected, "{channels}");
            let (singles, size) = rounded(&map, padding, 2);
            assert_eq!(size, [4, 8]);
            assert_eq!(*singles, expected, "{channels}");
        }
    }
}
