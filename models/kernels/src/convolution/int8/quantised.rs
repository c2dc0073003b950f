//! Images rounded to 8 bits.

use std::cell::RefCell;

use crate::memory::{FeatureView, pad_image};
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};
use crate::window::Padding;

/// Inputs that are multiplied at once.
pub(super) const GROUP: usize = 4;

/// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0;

/// Values that are compared or rounded at once.
const LANES: usize = 16;

/// Images in 8 bits, with their padding.
pub(super) struct QuantisedImages {
    /// `[images, height, width, channels]`, then room for a group that extends beyond the last
    /// image.
    pub(super) bytes: Vec<u8>,
    /// One per image.
    pub(super) scales: Vec<ByteScale>,
}

/// Meaning of an image's bytes: `(byte - zero_point) * step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ByteScale {
    /// NaN if the image has a value that is NaN or infinite; then all its outputs are NaN.
    pub(super) step: f32,
    pub(super) zero_point: i32,
}

thread_local! {
    /// Memory of this thread's last images.
    static KEPT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

// === impl QuantisedImages ===

impl QuantisedImages {
    /// Rounds images and puts zeros around them; also returns their lines and columns.
    pub(super) fn of(x: FeatureView<'_>, padding: Padding) -> (Self, [usize; 2]) {
        let [images, height, width, channels] = x.dims;
        let size = padding.around(height, width);
        let line = size[1] * channels;
        let mut bytes = KEPT.take();
        // The bytes left in it are overwritten.
        bytes.resize(images * size[0] * line + GROUP, 0);
        let mut scales = Vec::with_capacity(images);
        for (to, from) in bytes
            .chunks_exact_mut((size[0] * line).max(1))
            .zip(x.values.chunks_exact(x.image_len().max(1)))
        {
            let scale = ByteScale::of(from);
            let zero = scale.zero_point as u8;
            pad_image(
                to,
                zero,
                padding,
                [height, width * channels, channels],
                |i, to| {
                    let from = &from[i * width * channels..][..width * channels];
                    dispatch(RoundToBytes { from, to, scale });
                },
            );
            scales.push(scale);
        }
        (Self { bytes, scales }, size)
    }
}

impl Drop for QuantisedImages {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // A thread that is ending keeps nothing.
        let _ = KEPT.try_with(|kept| kept.replace(bytes));
    }
}

// === impl ByteScale ===

impl ByteScale {
    /// Maps the smallest value to 0 and the largest to 255; 0 counts as a value.
    fn of(values: &[f32]) -> Self {
        let ValueRange { low, high, finite } = dispatch(RangeOf(values));
        let step = (high - low) / 255.0;
        if !finite {
            return Self {
                step: f32::NAN,
                zero_point: 0,
            };
        }
        // A subnormal step has no inverse; such an image becomes zeros.
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

/// Converts values to bytes.
struct RoundToBytes<'a> {
    from: &'a [f32],
    to: &'a mut [u8],
    scale: ByteScale,
}

impl Vectorized for RoundToBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let ByteScale { step, zero_point } = self.scale;
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

/// The smallest and the largest of the values and 0.
struct ValueRange {
    low: f32,
    high: f32,
    finite: bool,
}

struct RangeOf<'a>(&'a [f32]);

impl Vectorized for RangeOf<'_> {
    type Output = ValueRange;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> ValueRange {
        let mut low = [0f32; LANES];
        let mut high = [0f32; LANES];
        // Stays 0 unless a value is infinite or NaN.
        let mut odd = [0f32; LANES];
        let (whole, rest) = self.0.as_chunks::<LANES>();
        let mut last = [0f32; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for values in whole.iter().chain([&last]) {
            for i in 0..LANES {
                low[i] = if values[i] < low[i] {
                    values[i]
                } else {
                    low[i]
                };
                high[i] = if values[i] > high[i] {
                    values[i]
                } else {
                    high[i]
                };
                odd[i] += values[i] * 0.0;
            }
        }
        ValueRange {
            low: low.into_iter().fold(0.0, f32::min),
            high: high.into_iter().fold(0.0, f32::max),
            finite: odd.iter().all(|odd| *odd == 0.0),
        }
    }
}
