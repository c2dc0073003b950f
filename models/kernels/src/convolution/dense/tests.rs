#![allow(clippy::unwrap_used)]
use half::bf16 as Half;

use super::super::driver::convolve;
use super::super::packed::{PackedConv, PackedLinear, WeightFormat};
use super::*;
use crate::activation::Activation;
use crate::memory::FeatureMap;
use crate::simd::products::Widened;
use crate::simd::vectors::Portable;
use crate::testing::{
    ACTIVATIONS, apply, assert_close, centred_windows, convolved, image, lopsided, map, pool,
    random, random_map,
};
use crate::window::Padding;

/// Rounded to bf16 and back.
fn rounded(values: &[f32]) -> Vec<f32> {
    let values = values.iter();
    values.map(|x| Half::from_f32(*x).to_f32()).collect()
}

/// The factors that the kernels multiply; the last row of the weights is the bias, which is not
/// rounded.
fn operands(x: &FeatureMap, weight: &[f32], output: usize, words: Words) -> (FeatureMap, Vec<f32>) {
    if words == Words::F32 {
        return (x.clone(), weight.to_vec());
    }
    let (products, bias) = weight.split_at(weight.len() - output);
    let weight = [rounded(products), bias.to_vec()].concat();
    (map(&rounded(&x.values), x.dims()), weight)
}

const WORDS: [Words; 2] = [Words::F32, Words::Bf16];

fn windows() -> Vec<Window2d> {
    let mut windows = centred_windows();
    windows.extend([
        lopsided([1, 8], [1, 2], [0, 3, 0, 4]),
        lopsided([2, 3], [1, 2], [0, 1, 1, 0]),
        lopsided([3, 3], [2, 2], [0, 0, 1, 1]),
    ]);
    windows
}

/// Channels that fill no panel, one vector of a panel, one panel, and several panels.
const CHANNELS: [[usize; 2]; 7] = [[1, 1], [3, 7], [5, 8], [8, 16], [16, 27], [4, 70], [3, 150]];

#[test]
fn results_are_those_of_the_definition() {
    for [input, output] in CHANNELS {
        let x = random_map([2, 11, 9, input]);
        for window in windows() {
            let weight = random((window.positions() * input + 1) * output, 0.3);
            for words in WORDS {
                check_convolution(&x, &weight, window, output, words);
            }
        }
    }
}

/// Lines of windows that are longer than a part of the weights, and panels of more than one part.
#[test]
fn weights_in_several_parts_give_the_definition() {
    let x = random_map([1, 5, 4, 600]);
    for (window, output) in [
        (Window2d::centred(1, 1), 150),
        (Window2d::centred(3, 1), 27),
    ] {
        let weight = random((window.positions() * 600 + 1) * output, 0.02);
        for words in WORDS {
            check_convolution(&x, &weight, window, output, words);
        }
    }
}

fn check_convolution(
    x: &FeatureMap,
    weight: &[f32],
    window: Window2d,
    output: usize,
    words: Words,
) {
    let input = x.dims()[3];
    let name = format!("{input} to {output}, {window:?}, {words:?}");
    let (exact, exact_weight) = operands(x, weight, output, words);
    let theirs = convolved(&exact, &exact_weight, window, output);
    let packed = DenseKernel::new(weight, [window.kernel[0], input, output], words);
    let ours = convolve(&packed, x, window, None, Activation::None).unwrap();
    assert_close(&ours.values, &theirs, 1e-4, &name);
    // The fused rest is the same arithmetic afterwards.
    let residual = random_map(ours.dims());
    for activation in ACTIVATIONS {
        let fused = convolve(&packed, x, window, Some(&residual), activation).unwrap();
        let sums = ours.values.iter().zip(&*residual.values);
        let mut apart: Vec<f32> = sums.map(|(a, b)| a + b).collect();
        apply(activation, &mut apart);
        assert_eq!(*fused.values, apart, "{name} {activation:?}");
    }
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
        let x = random_map([5, 33, 31, input]);
        for words in WORDS {
            let shape = [window.kernel[0], input, output];
            let packed = DenseKernel::new(&weight, shape, words);
            let run = |x: &FeatureMap| {
                let result = convolve(&packed, x, window, None, Activation::Relu);
                result.unwrap().values.to_vec()
            };
            let together = pool(1).install(|| run(&x));
            assert_eq!(together, pool(3).install(|| run(&x)));
            let each = together.len() / 5;
            for (i, row) in together.chunks_exact(each).enumerate() {
                let alone = run(&image(&x, i));
                assert_eq!(row, alone, "{window:?} {i} {words:?}");
            }
        }
    }
}

/// Includes positions with an odd number of channels, whose last word has room for one more.
#[test]
fn an_infinite_value_stays_in_its_windows() {
    let window = Window2d::centred(1, 1);
    for words in WORDS {
        let packed = DenseKernel::new(&[1.0, 1.0, 1.0, 0.5], [1, 3, 1], words);
        for odd in [f32::NAN, f32::INFINITY] {
            let x = map(&[1.0, 2.0, 3.0, odd, odd, odd, 4.0, 5.0, 6.0], [3, 1, 1, 3]);
            let result = convolve(&packed, &x, window, None, Activation::None);
            let result = result.unwrap().values.to_vec();
            assert_eq!([result[0], result[2]], [6.5, 15.5]);
            assert!(!result[1].is_finite(), "{words:?}");
        }
    }
}

/// Vectors of other lengths, in plain code; 16 values stand for AVX-512.
#[test]
fn vectors_of_any_length_give_the_same() {
    for [input, output] in CHANNELS {
        let x = random_map([1, 7, 9, input]);
        let weight = random((9 * input + 1) * output, 0.3);
        for words in WORDS {
            let run = |lanes: usize| with_lanes(&x, &weight, output, words, lanes);
            assert!(run(4).iter().all(|x| x.is_finite()));
            assert_eq!(run(4), run(8));
            assert_eq!(run(4), run(16));
        }
    }
}

/// A window of 3 by 3 over 7 by 9 positions, without padding.
fn with_lanes(
    x: &FeatureMap,
    weight: &[f32],
    output: usize,
    words: Words,
    lanes: usize,
) -> Vec<f32> {
    let registers = if lanes > 8 { 32 } else { 16 };
    let channels = x.dims()[3];
    let shape = [3, channels, output];
    let kernel = DenseKernel::for_vectors(weight, shape, words, [lanes, registers]);
    let inside = lopsided([3, 3], [1, 1], [0; 4]);
    // Plain code reads the two values of a word one by one.
    let (images, steps) = match words {
        Words::F32 => (DenseImages::F32(Padded::new(x.view(), inside.padding)), 1),
        Words::Bf16 => {
            let words = bf16::rounded(x.view(), Padding::default(), 2).0;
            (DenseImages::Bf16(words), 2)
        }
    };
    let size = [7, 9, words.of_position(channels) * steps];
    let input = DenseInput {
        images,
        geometry: Geometry::new(size, inside, [5, 7]),
    };
    let mut out = vec![f32::NAN; 5 * 7 * output];
    let block = ConvBlock {
        job: ConvJob {
            kernel: &kernel,
            x: x.view(),
            input: &input,
            window: inside,
            windows: [5, 7],
            residual: None,
            activation: Activation::None,
        },
        from: 0,
        out: &mut out,
    };
    match (words, lanes) {
        (Words::F32, 4) => compute(block, Singles(Portable::<4>)),
        (Words::F32, 8) => compute(block, Singles(Portable::<8>)),
        (Words::F32, _) => compute(block, Singles(Portable::<16>)),
        (Words::Bf16, 4) => compute(block, Widened(Portable::<4>)),
        (Words::Bf16, 8) => compute(block, Widened(Portable::<8>)),
        (Words::Bf16, _) => compute(block, Widened(Portable::<16>)),
    }
    out
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    for words in WORDS {
        let packed = DenseKernel::new(&[0.0; 10 * 4], [3, 1, 4], words);
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
        // The same number of rows, in one line.
        let flat = lopsided([1, 9], [1, 1], [0, 4, 0, 4]);
        assert!(run(&x, flat, None).contains("9 rows"));
    }
}

#[test]
fn a_linear_map_of_rows_is_a_convolution_of_one_position() {
    let weight = random(38 * 50, 1.0);
    let x = random_map([1, 1, 29, 37]);
    let point = Window2d::centred(1, 1);
    let packed = PackedConv::new(&weight, Some(point), [37, 50], WeightFormat::F32).unwrap();
    let theirs = packed.forward(&x, point, None, Activation::None).unwrap();
    let linear = PackedLinear::new(&weight, [37, 50]).unwrap();
    let mut ours = vec![f32::NAN; 29 * 50];
    linear.forward(&x.values, &mut ours).unwrap();
    assert_eq!(ours, *theirs.values);
    assert!(linear.forward(&x.values[1..], &mut ours).is_err());
    assert!(linear.forward(&x.values, &mut ours[1..]).is_err());
    linear.forward(&[], &mut []).unwrap();
    assert!(PackedLinear::new(&weight, [37, 49]).is_err());
    assert!(PackedLinear::new(&[], [37, 0]).is_err());
}
