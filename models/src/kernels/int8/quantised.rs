//! Pictures rounded to 8 bits.

use std::cell::RefCell;

use super::super::Map;
use super::super::simd::{Simd, Vectorized, dispatch};
use super::GROUP;
use crate::unfold2d::Padding;

/// Adding and taking away 1.5 * 2^23 rounds to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0;

/// Numbers that are compared or rounded at once.
const LANES: usize = 16;

/// Pictures in 8 bits, their padding with them.
pub(super) struct Quantised {
    /// `[pictures, height, width, channels]`, and what a group may reach behind the last.
    pub(super) bytes: Vec<u8>,
    /// By picture.
    pub(super) scales: Vec<Scale>,
}

/// What the bytes of a picture stand for: `(byte - zero_point) * step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// No number where the picture has one that is none or infinite: so have all answers to it.
    pub(super) step: f32,
    pub(super) zero_point: i32,
}

thread_local! {
    /// What the last picture of this thread was kept in.
    static KEPT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

// === impl Quantised ===

impl Quantised {
    /// Rounds pictures and puts zeros around them; returns their lines and columns then.
    pub(super) fn of(x: &Map, padding: Padding) -> (Self, [usize; 2]) {
        let [pictures, height, width, channels] = x.dims();
        let size = [
            padding.top + height + padding.bottom,
            padding.left + width + padding.right,
        ];
        let line = size[1] * channels;
        let mut bytes = KEPT.take();
        // What is left of the last picture is written over.
        bytes.resize(pictures * size[0] * line + GROUP, 0);
        let mut scales = Vec::with_capacity(pictures);
        let (left, inside) = (padding.left * channels, width * channels);
        for (to, from) in bytes
            .chunks_exact_mut((size[0] * line).max(1))
            .zip(x.numbers.chunks_exact(x.picture_len().max(1)))
        {
            let scale = Scale::of(from);
            let zero = scale.zero_point as u8;
            let (top, rest) = to.split_at_mut(padding.top * line);
            let (middle, bottom) = rest.split_at_mut(height * line);
            top.fill(zero);
            bottom.fill(zero);
            for (to, from) in middle
                .chunks_exact_mut(line)
                .zip(from.chunks_exact(inside.max(1)))
            {
                to[..left].fill(zero);
                let to_inside = &mut to[left..left + inside];
                dispatch(Round {
                    from,
                    to: to_inside,
                    scale,
                });
                to[left + inside..].fill(zero);
            }
            scales.push(scale);
        }
        (Self { bytes, scales }, size)
    }
}

impl Drop for Quantised {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // A thread that is ending keeps nothing.
        let _ = KEPT.try_with(|kept| kept.replace(bytes));
    }
}

// === impl Scale ===

impl Scale {
    /// By which the smallest number is 0 and the largest 255; 0 is among them.
    fn of(numbers: &[f32]) -> Self {
        let Range { low, high, finite } = dispatch(RangeOf(numbers));
        let step = (high - low) / 255.0;
        if !finite {
            return Self {
                step: f32::NAN,
                zero_point: 0,
            };
        }
        // A step that is no normal number has no inverse; such a picture is zeros.
        if step < f32::MIN_POSITIVE {
            return Self {
                step: 0.0,
                zero_point: 0,
            };
        }
        let zero_point = (-low / step).round_ties_even().clamp(0.0, 255.0);
        Self {
            step,
            zero_point: zero_point as i32,
        }
    }
}

/// Numbers to bytes.
struct Round<'a> {
    from: &'a [f32],
    to: &'a mut [u8],
    scale: Scale,
}

impl Vectorized for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Scale { step, zero_point } = self.scale;
        let per_step = if step > 0.0 { 1.0 / step } else { 0.0 };
        let (least, most) = (-zero_point as f32, (255 - zero_point) as f32);
        let shift = zero_point.wrapping_sub(ROUND.to_bits() as i32);
        for (to, from) in self.to.iter_mut().zip(self.from) {
            let steps = (from * per_step).max(least).min(most);
            let rounded = (steps + ROUND).to_bits() as i32;
            *to = rounded.wrapping_add(shift) as u8;
        }
    }
}

/// The smallest and the largest of numbers and 0.
struct Range {
    low: f32,
    high: f32,
    finite: bool,
}

struct RangeOf<'a>(&'a [f32]);

impl Vectorized for RangeOf<'_> {
    type Output = Range;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Range {
        let mut low = [0f32; LANES];
        let mut high = [0f32; LANES];
        // Stays 0 unless a number is infinite or none.
        let mut odd = [0f32; LANES];
        let (whole, rest) = self.0.as_chunks::<LANES>();
        let mut last = [0f32; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for numbers in whole.iter().chain([&last]) {
            for i in 0..LANES {
                low[i] = if numbers[i] < low[i] {
                    numbers[i]
                } else {
                    low[i]
                };
                high[i] = if numbers[i] > high[i] {
                    numbers[i]
                } else {
                    high[i]
                };
                odd[i] += numbers[i] * 0.0;
            }
        }
        Range {
            low: low.into_iter().fold(0.0, f32::min),
            high: high.into_iter().fold(0.0, f32::max),
            finite: odd.iter().all(|odd| *odd == 0.0),
        }
    }
}
