//! Depthwise convolution and its gradients in plain code, over unpacked weights: for training.
//!
//! Channels are last, hence neighbours in memory: the innermost loop runs over them, with one
//! multiply-add per value read.

use crate::unfold::Windows;

/// Convolves each channel of `images` with its column of `weight` `[positions + 1, channels]`, rows
/// ordered by (line, column), then the bias: `[images, lines, columns, channels]`.
pub fn depthwise(windows: &Windows, images: &[f32], weight: &[f32]) -> Vec<f32> {
    let channels = windows.channels();
    let (taps, bias) = weight.split_at(windows.positions() * channels);
    let count = images.len() / windows.image_len().max(1);
    let mut sums = bias.repeat(count * windows.per_image());
    let outputs = sums.chunks_exact_mut(output_len(windows));
    for (image, sums) in images.chunks_exact(image_len(windows)).zip(outputs) {
        windows.for_each_run(|run| {
            let sum = &mut sums[run.window * channels..][..channels];
            let values = &image[run.position * channels..][..run.count * channels];
            let factors = &taps[run.slot * channels..][..run.count * channels];
            for (value, factor) in values
                .chunks_exact(channels)
                .zip(factors.chunks_exact(channels))
            {
                multiply_add(sum, value, factor);
            }
        });
    }
    sums
}

/// Gradient of [`depthwise`] in its images, from the result's gradient and the weights.
pub fn depthwise_image_gradient(windows: &Windows, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let channels = windows.channels();
    let count = gradient.len() / output_len(windows);
    let mut sums = vec![0f32; count * windows.image_len()];
    let images = sums.chunks_exact_mut(image_len(windows));
    for (sums, gradient) in images.zip(gradient.chunks_exact(output_len(windows))) {
        windows.for_each_run(|run| {
            let value = &gradient[run.window * channels..][..channels];
            let onto = &mut sums[run.position * channels..][..run.count * channels];
            let factors = &weight[run.slot * channels..][..run.count * channels];
            for (sum, factor) in onto
                .chunks_exact_mut(channels)
                .zip(factors.chunks_exact(channels))
            {
                multiply_add(sum, value, factor);
            }
        });
    }
    sums
}

/// Gradient of [`depthwise`] in its weights, from the images and the result's gradient.
pub fn depthwise_weight_gradient(windows: &Windows, images: &[f32], gradient: &[f32]) -> Vec<f32> {
    let channels = windows.channels();
    let positions = windows.positions();
    let mut sums = vec![0f32; (positions + 1) * channels];
    let (taps, bias) = sums.split_at_mut(positions * channels);
    let outputs = gradient.chunks_exact(output_len(windows));
    for (image, gradient) in images.chunks_exact(image_len(windows)).zip(outputs) {
        windows.for_each_run(|run| {
            let factor = &gradient[run.window * channels..][..channels];
            let values = &image[run.position * channels..][..run.count * channels];
            let onto = &mut taps[run.slot * channels..][..run.count * channels];
            for (sum, value) in onto
                .chunks_exact_mut(channels)
                .zip(values.chunks_exact(channels))
            {
                multiply_add(sum, value, factor);
            }
        });
    }
    for gradient in gradient.chunks_exact(channels.max(1)) {
        for (sum, value) in bias.iter_mut().zip(gradient) {
            *sum += value;
        }
    }
    sums
}

/// Values of one image; at least 1, to cut slices by.
fn image_len(windows: &Windows) -> usize {
    windows.image_len().max(1)
}

/// Values of one image's output; at least 1, to cut slices by.
fn output_len(windows: &Windows) -> usize {
    (windows.per_image() * windows.channels()).max(1)
}

/// `sum += a * b`, element by element.
#[inline]
fn multiply_add(sum: &mut [f32], a: &[f32], b: &[f32]) {
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        *sum += a * b;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{assert_close, depthwise_convolved, lopsided, random, random_map};
    use crate::window::Window2d;

    /// The gradients are the transposes of the linear maps: `<depthwise(x, w), y>` is linear in `x`
    /// and in `w`.
    #[test]
    fn results_are_those_of_the_definition_and_gradients_their_transposes() {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let x = random_map([2, 7, 6, 5]);
        for window in [
            Window2d::centred(1, 1),
            Window2d::centred(3, 2),
            Window2d::centred(5, 2),
            lopsided([5, 1], [1, 1], [2, 0, 2, 0]),
        ] {
            let windows = Windows::new(window, [7, 6, 5]).unwrap();
            let weight = random((window.positions() + 1) * 5, 1.0);
            let ours = depthwise(&windows, &x.values, &weight);
            let theirs = depthwise_convolved(&x, &weight, window);
            assert_close(&ours, &theirs, 1e-4, &format!("{window:?}"));
            let y = random(ours.len(), 1.0);
            let of_weight = depthwise_weight_gradient(&windows, &x.values, &y);
            let forward = dot(&ours, &y);
            assert!((forward - dot(&of_weight, &weight)).abs() < 1e-2);
            let of_images = depthwise_image_gradient(&windows, &y, &weight);
            let bias = of_weight.len() - 5;
            let constant = dot(&of_weight[bias..], &weight[bias..]);
            assert!((forward - constant - dot(&of_images, &x.values)).abs() < 1e-2);
        }
    }
}
