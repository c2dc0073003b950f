//! Means and maxima over positions.

use crate::error::KernelError;
use crate::memory::FeatureMap;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};
use crate::unfold::Windows;
use crate::window::Window2d;

/// Mean over all positions: `[images, height, width, channels]` to `[images, 1, 1, channels]`.
pub fn mean(x: &FeatureMap) -> FeatureMap {
    let [images, height, width, channels] = x.dims();
    let mut result = FeatureMap::new([images, 1, 1, channels]);
    let share = 1.0 / (height * width) as f32;
    let sums = result.values.chunks_exact_mut(channels.max(1));
    for (sums, image) in sums.zip(x.values.chunks_exact(x.image_len().max(1))) {
        dispatch(MeanOfImage { sums, image, share });
    }
    result
}

/// Largest value of each window and channel, at least `least`: that of positions outside the image.
///
/// # Errors
/// An image with its padding is smaller than a window.
pub fn max(x: &FeatureMap, window: Window2d, least: f32) -> Result<FeatureMap, KernelError> {
    let [images, height, width, channels] = x.dims();
    let windows = Windows::new(window, [height, width, channels])?;
    let [lines, columns] = windows.output();
    let mut result = FeatureMap::new([images, lines, columns, channels]);
    max_values(&windows, &x.values, &mut result.values, least);
    Ok(result)
}

/// The same from `images` to `maxima` `[images, lines, columns, channels]`.
pub fn max_values(windows: &Windows, images: &[f32], maxima: &mut [f32], least: f32) {
    let len = (windows.per_image() * windows.channels()).max(1);
    let images = images.chunks_exact(windows.image_len().max(1));
    for (maxima, image) in maxima.chunks_exact_mut(len).zip(images) {
        dispatch(MaxOfImage {
            windows,
            image,
            maxima,
            least,
        });
    }
}

struct MeanOfImage<'a> {
    sums: &'a mut [f32],
    image: &'a [f32],
    share: f32,
}

struct MaxOfImage<'a> {
    windows: &'a Windows,
    image: &'a [f32],
    maxima: &'a mut [f32],
    least: f32,
}

impl Vectorized for MeanOfImage<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.sums.fill(0.0);
        for position in self.image.chunks_exact(self.sums.len()) {
            for (sum, value) in self.sums.iter_mut().zip(position) {
                *sum += value;
            }
        }
        for sum in self.sums {
            *sum *= self.share;
        }
    }
}

impl Vectorized for MaxOfImage<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self {
            windows,
            image,
            maxima,
            least,
        } = self;
        let channels = windows.channels();
        maxima.fill(least);
        windows.for_each_run(|run| {
            let onto = &mut maxima[run.window * channels..][..channels];
            let values = &image[run.position * channels..][..run.count * channels];
            for value in values.chunks_exact(channels) {
                for (largest, value) in onto.iter_mut().zip(value) {
                    // NaN stays NaN.
                    if *value > *largest || value.is_nan() {
                        *largest = *value;
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{assert_close, random_map, slots};

    #[test]
    fn the_mean_is_that_of_the_positions() {
        let x = random_map([3, 9, 7, 21]);
        let mut want = vec![0.0; 3 * 21];
        for (i, value) in x.values.iter().enumerate() {
            want[i / (63 * 21) * 21 + i % 21] += value / 63.0;
        }
        assert_close(&mean(&x).values, &want, 1e-5, "mean");
    }

    /// Wherever the window meets it.
    #[test]
    fn the_maximum_of_a_window_with_nan_is_nan() {
        let window = Window2d::centred(3, 1);
        for odd in 0..9 {
            let mut x = random_map([1, 3, 3, 5]);
            x.values[odd * 5 + 2] = f32::NAN;
            let largest = max(&x, window, 0.0).unwrap();
            // The middle window meets all nine positions.
            for (channel, value) in largest.values[4 * 5..][..5].iter().enumerate() {
                assert_eq!(value.is_nan(), channel == 2, "{odd} {channel}");
            }
        }
    }

    #[test]
    fn the_maximum_is_that_of_the_slots() {
        let x = random_map([3, 9, 7, 21]);
        for window in [Window2d::centred(3, 2), Window2d::centred(1, 1)] {
            let ours = max(&x, window, 0.0).unwrap();
            let mut want = Vec::new();
            for slots in slots(&x, window) {
                for channel in 0..21 {
                    let of_channel = slots.iter().skip(channel).step_by(21);
                    want.push(of_channel.fold(0f32, |most, x| most.max(*x)));
                }
            }
            assert_eq!(*ours.values, want);
        }
    }
}
