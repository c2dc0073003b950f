#![allow(clippy::unwrap_used)]
use candle_core::{Device, Tensor};

use super::super::simd::Portable;
use super::*;
use crate::convolve2d::convolve2d;

fn random(shape: &[usize], deviation: f32) -> Tensor {
    Tensor::randn(0f32, deviation, shape, &Device::Cpu).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

fn map(x: &Tensor) -> Map {
    Map::of(x, x.dims4().unwrap().into()).unwrap()
}

fn lopsided(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 4]) -> Window2d {
    let [top, left, bottom, right] = padding;
    Window2d {
        kernel,
        stride,
        padding: Padding {
            top,
            left,
            bottom,
            right,
        },
    }
}

fn windows() -> Vec<Window2d> {
    vec![
        Window2d::centred(1, 1),
        Window2d::centred(1, 2),
        Window2d::centred(3, 1),
        Window2d::centred(3, 2),
        Window2d::centred(7, 2),
        lopsided([1, 8], [1, 2], [0, 3, 0, 4]),
        lopsided([2, 3], [1, 2], [0, 1, 1, 0]),
        lopsided([3, 3], [2, 2], [0, 0, 1, 1]),
    ]
}

/// Channels that fill no panel, one vector of one, one panel, and some.
const CHANNELS: [[usize; 2]; 7] = [[1, 1], [3, 7], [5, 8], [8, 16], [16, 27], [4, 70], [3, 150]];

#[test]
fn results_are_those_of_the_plain_convolution() {
    for [input, output] in CHANNELS {
        let x = random(&[2, 11, 9, input], 1.0);
        for window in windows() {
            let what = format!("{input} to {output}, {window:?}");
            let rows = window.positions() * input + 1;
            let weight = random(&[rows, output], 0.3);
            let theirs = convolve2d(&x, &weight, window).unwrap();
            let packed = Dense::new(&numbers(&weight), input, output);
            let x = map(&x);
            let ours = packed.forward(&x, window, None, Activation::None).unwrap();
            assert_eq!(ours.dims().as_slice(), theirs.dims(), "{what}");
            for (a, b) in ours.numbers.iter().zip(numbers(&theirs)) {
                assert!((a - b).abs() < 1e-4, "{what}: {a} {b}");
            }
            // The fused rest is the same arithmetic afterwards.
            let residual = map(&random(theirs.dims(), 1.0));
            for activation in [Activation::None, Activation::Relu, Activation::Silu] {
                let fused = packed
                    .forward(&x, window, Some(&residual), activation)
                    .unwrap();
                let sums = ours.numbers.iter().zip(&*residual.numbers);
                let mut apart: Vec<f32> = sums.map(|(a, b)| a + b).collect();
                match activation {
                    Activation::None => {}
                    Activation::Relu => apart.iter_mut().for_each(|x| *x = x.max(0.0)),
                    Activation::Silu => gates::silu(&mut apart),
                }
                assert_eq!(*fused.numbers, apart, "{what} {activation:?}");
            }
        }
    }
}

/// Bit for bit: what a picture is computed beside, and on how many threads, changes nothing.
#[test]
fn a_picture_does_not_depend_on_its_batch_or_threads() {
    let pool = |threads| {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    };
    for (window, [input, output]) in [
        (Window2d::centred(3, 1), [24, 40]),
        (Window2d::centred(1, 1), [48, 72]),
        (Window2d::centred(7, 2), [3, 64]),
    ] {
        let weight = random(&[window.positions() * input + 1, output], 0.1);
        let packed = Dense::new(&numbers(&weight), input, output);
        let x = random(&[5, 23, 21, input], 1.0);
        let run = |x: &Tensor| {
            let result = packed.forward(&map(x), window, None, Activation::Relu);
            result.unwrap().numbers.to_vec()
        };
        let together = pool(1).install(|| run(&x));
        assert_eq!(together, pool(3).install(|| run(&x)));
        let each = together.len() / 5;
        for (i, row) in together.chunks_exact(each).enumerate() {
            assert_eq!(row, run(&x.narrow(0, i, 1).unwrap()), "{window:?} {i}");
        }
    }
}

/// Vectors of other machines, one number at a time; 16 numbers stand for AVX-512.
#[test]
fn vectors_of_any_length_give_the_same() {
    for [input, output] in CHANNELS {
        let x = numbers(&random(&[1, 7, 9, input], 1.0));
        let weight = numbers(&random(&[9 * input + 1, output], 0.3));
        let run = |lanes: usize| {
            let registers = if lanes > 8 { 32 } else { 16 };
            let dense = Dense::for_vectors(&weight, input, output, lanes, registers);
            let inside = lopsided([3, 3], [1, 1], [0; 4]);
            let mut out = vec![f32::NAN; 5 * 7 * output];
            let block = Block {
                call: Call {
                    dense: &dense,
                    input: &x,
                    geometry: Geometry::new([7, 9, input], inside, [5, 7]),
                    residual: None,
                    activation: Activation::None,
                },
                first: 0,
                out: &mut out,
            };
            match lanes {
                4 => block.run(Portable::<4>),
                8 => block.run(Portable::<8>),
                _ => block.run(Portable::<16>),
            }
            out
        };
        assert!(run(4).iter().all(|x| x.is_finite()));
        assert_eq!(run(4), run(8));
        assert_eq!(run(4), run(16));
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let packed = Dense::new(&[0.0; 10 * 4], 1, 4);
    let x = map(&random(&[1, 4, 4, 1], 1.0));
    let window = Window2d::centred(3, 1);
    let run = |x: &Map, window, residual: Option<&Map>| {
        let result = packed.forward(x, window, residual, Activation::None);
        result.unwrap_err().to_string()
    };
    let wide = map(&random(&[1, 4, 4, 2], 1.0));
    assert!(run(&wide, window, None).contains("2 channels"));
    assert!(run(&x, Window2d::centred(5, 1), None).contains("9 rows"));
    assert!(run(&x, window, Some(&x)).contains("residual"));
}
