#![allow(clippy::unwrap_used)]
use super::super::driver::convolve;
use super::*;
use crate::memory::FeatureMap;
use crate::simd::vectors::Portable;
use crate::testing::{
    assert_close, depthwise_convolved, image, lopsided, pool, random, random_map,
};

fn windows() -> Vec<Window2d> {
    vec![
        lopsided([5, 1], [1, 1], [2, 0, 2, 0]),
        lopsided([3, 1], [1, 1], [1, 0, 1, 0]),
        lopsided([3, 1], [1, 1], [2, 0, 0, 1]),
        lopsided([3, 3], [1, 1], [0, 2, 1, 0]),
        lopsided([3, 3], [1, 1], [0; 4]),
        lopsided([3, 3], [2, 1], [1; 4]),
        Window2d::centred(1, 1),
        Window2d::centred(3, 1),
        Window2d::centred(3, 2),
        lopsided([5, 5], [1, 1], [2, 1, 0, 3]),
        Window2d::centred(5, 1),
        Window2d::centred(5, 2),
    ]
}

#[test]
fn results_are_those_of_the_definition() {
    for channels in [1, 3, 8, 10, 18, 36, 75] {
        for [height, width] in [[7, 6], [3, 3], [16, 23]] {
            let x = random_map([2, height, width, channels]);
            for window in windows() {
                let weight = random((window.positions() + 1) * channels, 1.0);
                let theirs = depthwise_convolved(&x, &weight, window);
                let packed = DepthwiseKernel::new(&weight, channels);
                let ours = convolve(&packed, &x, window, None, Activation::None).unwrap();
                let name = format!("{height} {width} {channels} {window:?}");
                assert_close(&ours.values, &theirs, 1e-4, &name);
            }
        }
    }
}

/// An image that fits no first-level cache, and images narrower than a window.
#[test]
fn images_of_any_size_give_the_definition() {
    for dims in [[1, 30, 30, 24], [3, 1, 1, 3], [2, 2, 1, 40], [1, 1, 2, 7]] {
        let x = random_map(dims);
        for window in [Window2d::centred(3, 1), Window2d::centred(3, 2)] {
            let weight = random(10 * dims[3], 1.0);
            let theirs = depthwise_convolved(&x, &weight, window);
            let packed = DepthwiseKernel::new(&weight, dims[3]);
            let ours = convolve(&packed, &x, window, None, Activation::None).unwrap();
            assert_close(&ours.values, &theirs, 1e-4, &format!("{dims:?} {window:?}"));
        }
    }
}

/// Neither the threads nor the other images of a batch change a bit.
#[test]
fn an_image_alone_gives_the_same() {
    let mut x = random_map([3, 40, 12, 37]);
    x.values[5] = f32::NAN;
    for window in windows() {
        let weight = random((window.positions() + 1) * 37, 1.0);
        let packed = DepthwiseKernel::new(&weight, 37);
        let forward = |x: &FeatureMap| {
            let result = convolve(&packed, x, window, None, Activation::Relu).unwrap();
            let bits: Vec<u32> = result.values.iter().map(|value| value.to_bits()).collect();
            bits
        };
        let together = pool(1).install(|| forward(&x));
        assert_eq!(pool(5).install(|| forward(&x)), together, "{window:?}");
        let len = together.len() / 3;
        for (i, together) in together.chunks_exact(len).enumerate() {
            let image = image(&x, i);
            for threads in [1, 7] {
                let alone = pool(threads).install(|| forward(&image));
                assert_eq!(alone, together, "{window:?} {i} {threads}");
            }
            let is_nan = |bits: &u32| f32::from_bits(*bits).is_nan();
            assert_eq!(together.iter().any(is_nan), i == 0, "{window:?} {i}");
        }
    }
}

/// Vectors of other lengths, in plain code.
#[test]
fn vectors_of_any_length_give_the_same() {
    let channels = 75;
    for window in windows() {
        let weight = random((window.positions() + 1) * channels, 1.0);
        let x = random_map([1, 5, 5, channels]);
        let [lines, columns] = window.output(5, 5).unwrap();
        let all = |lanes: usize| {
            let packed = DepthwiseKernel::with_lanes(&weight, channels, lanes);
            let mut out = vec![f32::NAN; lines * columns * channels];
            let block = ConvBlock {
                job: ConvJob {
                    kernel: &packed,
                    x: x.view(),
                    input: &(),
                    window,
                    windows: [lines, columns],
                    residual: None,
                    activation: Activation::Relu,
                },
                from: 0,
                out: &mut out,
            };
            match lanes {
                4 => block.run(Portable::<4>),
                _ => block.run(Portable::<16>),
            }
            out
        };
        assert_eq!(all(4), all(16), "{window:?}");
        let packed = DepthwiseKernel::new(&weight, channels);
        let whole = convolve(&packed, &x, window, None, Activation::Relu).unwrap();
        assert_close(&all(16), &whole.values, 1e-5, &format!("{window:?}"));
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let packed = DepthwiseKernel::new(&[0.0; 10 * 2], 2);
    let x = random_map([1, 4, 4, 3]);
    let result = convolve(&packed, &x, Window2d::centred(3, 1), None, Activation::None);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("2 channels meet 3"), "{error}");
    let x = random_map([1, 4, 4, 2]);
    let result = convolve(&packed, &x, Window2d::centred(5, 1), None, Activation::None);
    assert!(result.is_err());
}
