#![allow(clippy::unwrap_used)]
use super::super::dense::{DenseKernel, Words};
use super::super::driver::convolve;
use super::*;
use crate::memory::FeatureMap;
use crate::simd::vectors::Portable;
use crate::testing::{ACTIVATIONS, apply, assert_close, image, lopsided, pool, random, random_map};

/// Windows that partly lie outside the image on different sides.
fn windows() -> [Window2d; 4] {
    [
        Window2d::centred(3, 1),
        lopsided([3, 3], [1, 1], [0; 4]),
        lopsided([3, 3], [1, 1], [2, 0, 0, 1]),
        lopsided([3, 3], [1, 1], [2, 0, 3, 1]),
    ]
}

/// Includes channels that fill no vector, lines and columns that fill no tile, and more tiles in a
/// line than a block has.
#[test]
fn results_are_those_of_the_dense_convolution() {
    for [height, width] in [[3, 3], [4, 4], [8, 6], [7, 9], [5, 240]] {
        for [input, output] in [[16, 16], [3, 7], [20, 33], [16, 70]] {
            let x = random_map([2, height, width, input]);
            let weight = random((9 * input + 1) * output, 0.3);
            let theirs = DenseKernel::new(&weight, [3, input, output], Words::F32);
            let ours = WinogradKernel::new(&weight, [input, output]);
            for window in windows() {
                let theirs = convolve(&theirs, &x, window, None, Activation::None).unwrap();
                let ours = convolve(&ours, &x, window, None, Activation::None).unwrap();
                assert_eq!(ours.dims(), theirs.dims());
                let name = format!("{:?} {window:?}", x.dims());
                assert_close(&ours.values, &theirs.values, 1e-4, &name);
            }
        }
    }
}

#[test]
fn the_fused_rest_is_the_same_arithmetic() {
    let (window, [input, output]) = (Window2d::centred(3, 1), [16, 40]);
    let weight = random((9 * input + 1) * output, 0.3);
    let kernel = WinogradKernel::new(&weight, [input, output]);
    let x = random_map([2, 9, 11, input]);
    let residual = random_map([2, 9, 11, output]);
    let plain = convolve(&kernel, &x, window, None, Activation::None).unwrap();
    for activation in ACTIVATIONS {
        let fused = convolve(&kernel, &x, window, Some(&residual), activation);
        let sums = plain.values.iter().zip(&*residual.values);
        let mut apart: Vec<f32> = sums.map(|(a, b)| a + b).collect();
        apply(activation, &mut apart);
        assert_eq!(*fused.unwrap().values, apart, "{activation:?}");
    }
}

/// Bit for bit.
#[test]
fn an_image_does_not_depend_on_its_batch_or_threads() {
    let (window, [input, output]) = (Window2d::centred(3, 1), [24, 40]);
    let weight = random((9 * input + 1) * output, 0.1);
    let kernel = WinogradKernel::new(&weight, [input, output]);
    let x = random_map([5, 33, 31, input]);
    let run = |x: &FeatureMap| {
        let result = convolve(&kernel, x, window, None, Activation::Relu);
        result.unwrap().values.to_vec()
    };
    let together = pool(1).install(|| run(&x));
    assert_eq!(together, pool(3).install(|| run(&x)));
    let each = together.len() / 5;
    for (i, row) in together.chunks_exact(each).enumerate() {
        assert_eq!(row, run(&image(&x, i)), "{i}");
    }
}

/// Vectors of other machines: the same values within rounding.
#[test]
fn any_vectors_give_the_same() {
    let (window, [input, output]) = (Window2d::centred(3, 1), [17, 21]);
    let weight = random((9 * input + 1) * output, 0.3);
    let x = random_map([1, 6, 5, input]);
    let own = WinogradKernel::new(&weight, [input, output]);
    let own = convolve(&own, &x, window, None, Activation::None).unwrap();
    for (lanes, registers) in [(4, 16), (16, 32)] {
        let kernel = WinogradKernel::for_vectors(&weight, [input, output], [lanes, registers]);
        let mut out = vec![f32::NAN; own.values.len()];
        let block = ConvBlock {
            job: ConvJob {
                kernel: &kernel,
                x: x.view(),
                input: &kernel.prepare(x.view(), window, [6, 5]),
                window,
                windows: [6, 5],
                residual: None,
                activation: Activation::None,
            },
            from: 0,
            out: &mut out,
        };
        match lanes {
            4 => block.run(Portable::<4>),
            _ => block.run(Portable::<16>),
        }
        assert_close(&out, &own.values, 1e-4, &lanes.to_string());
    }
}

#[test]
fn it_suits_wide_windows_of_3_by_3_at_every_position() {
    let suits = |kernel, stride, channels| {
        WinogradKernel::suits(Window2d::centred(kernel, stride), channels)
    };
    assert!(suits(3, 1, [32, 32]) && suits(3, 1, [256, 256]));
    assert!(!suits(3, 2, [64, 64]) && !suits(1, 1, [64, 64]) && !suits(5, 1, [64, 64]));
    assert!(!suits(3, 1, [16, 64]) && !suits(3, 1, [512, 512]));
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let kernel = WinogradKernel::new(&[0.0; 9 * 2 * 3 + 3], [2, 3]);
    let x = random_map([1, 5, 5, 2]);
    let forward = |x: &FeatureMap, window| convolve(&kernel, x, window, None, Activation::None);
    assert!(forward(&x, Window2d::centred(3, 1)).is_ok());
    assert!(forward(&x, Window2d::centred(3, 2)).is_err());
    assert!(forward(&x, Window2d::centred(1, 1)).is_err());
    assert!(forward(&random_map([1, 5, 5, 4]), Window2d::centred(3, 1)).is_err());
}
