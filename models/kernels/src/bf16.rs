//! Values rounded to bf16, the upper half of an f32's bits, and images of such values.
//!
//! A word holds two of them: neighbouring channels of a position; an odd last channel is followed
//! by a zero. So a word never spans two positions: a zero weight would not keep an infinite value
//! of one position out of the sum of another.
//!
//! Without an instruction that multiplies such words, each value of an image gets a word of its
//! own.

use crate::memory::{Buffer, FeatureView};
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};
use crate::window::Padding;

/// The largest value that rounds to a finite one.
pub const LARGEST: f32 = f32::from_bits(0x7f7f_7fff);

/// Values of a word.
pub(crate) const PAIR: usize = 2;

/// The bits of a value rounded to 8 bits of precision: to nearest even; NaN stays NaN.
#[inline(always)]
fn round(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_nan() {
        // Quiet: otherwise the upper half might be that of infinity.
        return (bits | 0x0040_0000) >> 16;
    }
    // Finite values and infinity are far below an overflow.
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16
}

/// A word of two values. The f32 only carries the bits.
#[inline(always)]
pub(crate) fn pair(first: f32, second: f32) -> f32 {
    f32::from_bits(round(first) | round(second) << 16)
}

/// A rounded value, as an f32.
#[inline(always)]
fn single(x: f32) -> f32 {
    f32::from_bits(round(x) << 16)
}

/// Words of pairs of a position with this many channels.
pub(crate) fn words(channels: usize) -> usize {
    channels.div_ceil(PAIR)
}

/// Rounds images and puts zeros around them: `[images, lines, columns, words * steps]`, pairs for 1
/// step and single values for 2. Also returns their lines and columns.
pub(crate) fn rounded(x: FeatureView<'_>, padding: Padding, steps: usize) -> (Buffer, [usize; 2]) {
    let [images, height, width, channels] = x.dims;
    let size = padding.around(height, width);
    let words = words(channels) * steps;
    let mut to = Buffer::take(images * size[0] * size[1] * words);
    dispatch(RoundToWords {
        x,
        to: &mut to,
        padding,
        size,
        words,
        steps,
    });
    (to, size)
}

/// Converts values to words.
struct RoundToWords<'a> {
    x: FeatureView<'a>,
    to: &'a mut [f32],
    padding: Padding,
    size: [usize; 2],
    /// Words of a position.
    words: usize,
    steps: usize,
}

impl Vectorized for RoundToWords<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let [_, height, width, channels] = self.x.dims;
        let words = self.words;
        let line = self.size[1] * words;
        let (left, inside) = (self.padding.left * words, width * words);
        for (to, from) in self
            .to
            .chunks_exact_mut((self.size[0] * line).max(1))
            .zip(self.x.values.chunks_exact(self.x.image_len().max(1)))
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

/// Converts one position after the other.
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

/// The same for [`single`] values.
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
    use half::bf16 as Half;

    use super::*;
    use crate::testing::{random, random_map};

    /// The first value of a word, and the second.
    fn halves(word: f32) -> [f32; 2] {
        let bits = word.to_bits();
        [bits << 16, bits & 0xffff_0000].map(f32::from_bits)
    }

    fn rounded_one(x: f32) -> f32 {
        halves(pair(x, 0.0))[0]
    }

    #[test]
    fn values_go_to_the_nearest() {
        for x in random(1000, 1.0) {
            assert_eq!(rounded_one(x), Half::from_f32(x).to_f32());
        }
        // Ties go to even, and a word's second value is rounded as the first.
        assert_eq!(rounded_one(1.0 + 2f32.powi(-8)), 1.0);
        assert_eq!(rounded_one(1.0 + 3.0 * 2f32.powi(-8)), 1.0 + 2f32.powi(-6));
        assert_eq!(
            halves(pair(-3.0, 1.0 + 2f32.powi(-7))),
            [-3.0, 1.0 + 2f32.powi(-7)]
        );
    }

    #[test]
    fn nan_stays_nan_and_large_values_become_infinite() {
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
    fn images_have_zeros_around_them_and_behind_odd_channels() {
        for channels in [1, 2, 3, 34] {
            let x = random_map([2, 3, 5, channels]);
            let padding = Padding {
                top: 1,
                left: 2,
                bottom: 0,
                right: 1,
            };
            let even = channels.next_multiple_of(PAIR);
            let mut expected = vec![0.0; 2 * 4 * 8 * even];
            for (i, value) in x.values.iter().enumerate() {
                let (position, channel) = (i / channels, i % channels);
                let (image, line, column) = (position / 15, position / 5 % 3, position % 5);
                let at = ((image * 4 + line + 1) * 8 + column + 2) * even + channel;
                expected[at] = Half::from_f32(*value).to_f32();
            }
            let (pairs, size) = rounded(x.view(), padding, 1);
            assert_eq!(size, [4, 8]);
            let pairs = pairs.iter().copied().flat_map(halves);
            assert_eq!(pairs.collect::<Vec<f32>>(), expected, "{channels}");
            let (singles, size) = rounded(x.view(), padding, 2);
            assert_eq!(size, [4, 8]);
            assert_eq!(*singles, expected, "{channels}");
        }
    }
}
