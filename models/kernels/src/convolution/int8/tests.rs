#![allow(clippy::unwrap_used)]
use super::super::dense::{DenseKernel, Words};
use super::super::driver::convolve;
use super::*;
use crate::memory::FeatureMap;
use crate::testing::{
    ACTIVATIONS, apply, centred_windows, image, lopsided, map, pool, random, random_map,
};

fn windows() -> Vec<Window2d> {
    let mut windows = centred_windows();
    windows.push(lopsided([2, 3], [1, 2], [0, 1, 1, 0]));
    windows
}

/// Channels that fill no group, vector or panel, and channels that do.
const CHANNELS: [[usize; 2]; 6] = [[1, 1], [3, 7], [5, 16], [8, 27], [16, 70], [4, 150]];

/// The definition, value by value: integers of rounded inputs and weights.
fn reference(x: &FeatureMap, weight: &[f32], window: Window2d, output: usize) -> Vec<f32> {
    let [images, height, width, channels] = x.dims();
    let [lines, columns] = window.output(height, width).unwrap();
    let rows = window.positions() * channels;
    let mut out = Vec::new();
    for image in 0..images {
        let image = &x.values[image * x.image_len()..][..x.image_len()];
        let low = image.iter().copied().fold(0f32, f32::min);
        let high = image.iter().copied().fold(0f32, f32::max);
        let step = (high - low) / 255.0;
        let zero = (-low / step).round_ties_even() as i32;
        let per_step = 1.0 / step;
        let byte = |x: f32| ((x * per_step).round_ties_even() as i32).clamp(-zero, 255 - zero);
        for (line, column) in (0..lines).flat_map(|l| (0..columns).map(move |c| (l, c))) {
            for to in 0..output {
                let of_output = |row: usize| weight[row * output + to];
                let largest = (0..rows)
                    .map(|row| of_output(row).abs())
                    .fold(0f32, f32::max);
                let scale = largest / 127.0;
                let mut sum = 0i32;
                for row in 0..rows {
                    let (slot, channel) = (row / channels, row % channels);
                    let (y, x) = (slot / window.kernel[1], slot % window.kernel[1]);
                    let y = (line * window.stride[0] + y).checked_sub(window.padding.top);
                    let x = (column * window.stride[1] + x).checked_sub(window.padding.left);
                    let (Some(y), Some(x)) = (y, x) else { continue };
                    if y >= height || x >= width {
                        continue;
                    }
                    let input = byte(image[(y * width + x) * channels + channel]);
                    sum += input * (of_output(row) / scale).round_ties_even() as i32;
                }
                out.push(sum as f32 * (step * scale) + of_output(rows));
            }
        }
    }
    out
}

#[test]
fn results_are_those_of_integers_to_the_bit() {
    for [input, output] in CHANNELS {
        let x = random_map([2, 8, 9, input]);
        for window in windows() {
            let name = format!("{input} to {output}, {window:?}");
            let weight = random((window.positions() * input + 1) * output, 0.3);
            let packed = Int8Kernel::new(&weight, [window.kernel[0], input, output]).unwrap();
            let ours = convolve(&packed, &x, window, None, Activation::None).unwrap();
            let theirs = reference(&x, &weight, window, output);
            assert_eq!(*ours.values, theirs, "{name}");
            // The fused rest is the same arithmetic afterwards.
            let residual = random_map(ours.dims());
            for activation in ACTIVATIONS {
                let fused = convolve(&packed, &x, window, Some(&residual), activation);
                let sums = theirs.iter().zip(&*residual.values);
                let mut apart: Vec<f32> = sums.map(|(a, b)| a + b).collect();
                apply(activation, &mut apart);
                assert_eq!(*fused.unwrap().values, apart, "{name} {activation:?}");
            }
        }
    }
}

/// Rounding both sides to 8 bits: about a hundredth of the spread of the values.
#[test]
fn results_are_near_those_of_full_precision() {
    let window = Window2d::centred(3, 1);
    let weight = random((9 * 32 + 1) * 48, 0.1);
    let x = random_map([2, 9, 9, 32]);
    let narrow = Int8Kernel::new(&weight, [3, 32, 48]).unwrap();
    let narrow = convolve(&narrow, &x, window, None, Activation::None).unwrap();
    let full = DenseKernel::new(&weight, [3, 32, 48], Words::F32);
    let full = convolve(&full, &x, window, None, Activation::None).unwrap();
    let spread = |values: &[f32]| {
        let squares = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        (squares / values.len() as f64).sqrt()
    };
    let apart = narrow.values.iter().zip(&*full.values).map(|(a, b)| a - b);
    let apart = spread(&apart.collect::<Vec<f32>>()) / spread(&full.values);
    assert!((1e-4..0.02).contains(&apart), "{apart}");
}

/// Bit for bit: the rest of the batch and the number of threads change nothing.
#[test]
fn an_image_does_not_depend_on_its_batch_or_threads() {
    for (window, [input, output]) in [
        (Window2d::centred(3, 1), [24, 40]),
        (Window2d::centred(1, 1), [48, 72]),
        (Window2d::centred(7, 2), [3, 64]),
    ] {
        let weight = random((window.positions() * input + 1) * output, 0.1);
        let packed = Int8Kernel::new(&weight, [window.kernel[0], input, output]).unwrap();
        let x = random_map([5, 43, 41, input]);
        let run = |x: &FeatureMap| {
            let result = convolve(&packed, x, window, None, Activation::Relu);
            result.unwrap().values.to_vec()
        };
        let together = pool(1).install(|| run(&x));
        assert_eq!(together, pool(3).install(|| run(&x)));
        let each = together.len() / 5;
        for (i, row) in together.chunks_exact(each).enumerate() {
            assert_eq!(row, run(&image(&x, i)), "{window:?} {i}");
        }
    }
}

#[test]
fn images_of_one_value_zero_or_not_finite() {
    let weight = [1.0, -2.0, 0.25, 0.5, 10.0, 20.0];
    let packed = Int8Kernel::new(&weight, [1, 2, 2]).unwrap();
    let run = |x: [f32; 2]| {
        let x = map(&x, [1, 1, 1, 2]);
        let result = convolve(&packed, &x, Window2d::centred(1, 1), None, Activation::None);
        result.unwrap().values.to_vec()
    };
    assert_eq!(run([0.0, 0.0]), [10.0, 20.0]);
    assert_eq!(run([1e-40, 0.0]), [10.0, 20.0]);
    // All above and all below 0.
    for (x, expected) in [([8.0, 8.0], [20.0, 8.0]), ([-8.0, -8.0], [0.0, 32.0])] {
        for (a, b) in run(x).into_iter().zip(expected) {
            assert!((a - b).abs() < 0.1, "{x:?}: {a} {b}");
        }
    }
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(run([1.0, odd]).iter().all(|x| x.is_nan()), "{odd}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let packed = Int8Kernel::new(&[0.5; 10 * 4], [3, 1, 4]).unwrap();
    let x = random_map([1, 4, 4, 1]);
    let window = Window2d::centred(3, 1);
    let run = |x: &FeatureMap, window, residual: Option<&FeatureMap>| {
        let result = convolve(&packed, x, window, residual, Activation::None);
        result.unwrap_err().to_string()
    };
    let wide = random_map([1, 4, 4, 2]);
    assert!(run(&wide, window, None).contains("2 channels"));
    assert!(run(&x, Window2d::centred(5, 1), None).contains("9 rows"));
    assert!(run(&x, window, Some(&x)).contains("residual"));
    let many = vec![0.0; ROWS_MAX + 2];
    let error = Int8Kernel::new(&many, [1, ROWS_MAX + 1, 1]).unwrap_err();
    assert!(error.to_string().contains("66312"), "{error}");
}
