#![allow(clippy::unwrap_used)]
use candle_core::{DType, Device, Tensor};

use super::super::products::Widened;
use super::super::simd::Portable;
use super::super::testing::{map, numbers, random};
use super::*;
use crate::convolve2d::convolve2d;

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

/// As kept in 16 bits.
fn rounded(x: &Tensor) -> Tensor {
    let narrow = x.to_dtype(DType::BF16).unwrap();
    narrow.to_dtype(DType::F32).unwrap()
}

/// What kernels multiply of both, the last row of the weights being biases.
fn operands(x: &Tensor, weight: &Tensor, words: Words) -> (Tensor, Tensor) {
    if words == Words::F32 {
        return (x.clone(), weight.clone());
    }
    let rows = weight.dim(0).unwrap() - 1;
    let (products, bias) = (weight.narrow(0, 0, rows), weight.narrow(0, rows, 1));
    let weight = Tensor::cat(&[rounded(&products.unwrap()), bias.unwrap()], 0);
    (rounded(x), weight.unwrap())
}

const WORDS: [Words; 2] = [Words::F32, Words::Bf16];

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
            let weight = random(&[window.positions() * input + 1, output], 0.3);
            for words in WORDS {
                check_convolution(&x, &weight, window, words);
            }
        }
    }
}

fn check_convolution(x: &Tensor, weight: &Tensor, window: Window2d, words: Words) {
    let (input, output) = (x.dim(3).unwrap(), weight.dim(1).unwrap());
    let what = format!("{input} to {output}, {window:?}, {words:?}");
    let (exact, exact_weight) = operands(x, weight, words);
    let theirs = convolve2d(&exact, &exact_weight, window).unwrap();
    let packed = Dense::new(&numbers(weight), [window.kernel[0], input, output], words);
    let x = map(x);
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
        let x = random(&[5, 33, 31, input], 1.0);
        for words in WORDS {
            let shape = [window.kernel[0], input, output];
            let packed = Dense::new(&numbers(&weight), shape, words);
            let run = |x: &Tensor| {
                let result = packed.forward(&map(x), window, None, Activation::Relu);
                result.unwrap().numbers.to_vec()
            };
            let together = pool(1).install(|| run(&x));
            assert_eq!(together, pool(3).install(|| run(&x)));
            let each = together.len() / 5;
            for (i, row) in together.chunks_exact(each).enumerate() {
                let alone = run(&x.narrow(0, i, 1).unwrap());
                assert_eq!(row, alone, "{window:?} {i} {words:?}");
            }
        }
    }
}

/// Also where positions have an odd number of channels, and a word has room for one more.
#[test]
fn what_is_infinite_stays_in_its_windows() {
    let window = Window2d::centred(1, 1);
    for words in WORDS {
        let packed = Dense::new(&[1.0, 1.0, 1.0, 0.5], [1, 3, 1], words);
        for odd in [f32::NAN, f32::INFINITY] {
            let x = [1.0, 2.0, 3.0, odd, odd, odd, 4.0, 5.0, 6.0];
            let x = Tensor::new(&x, &Device::Cpu).unwrap();
            let x = map(&x.reshape((3, 1, 1, 3)).unwrap());
            let result = packed.forward(&x, window, None, Activation::None);
            let result = result.unwrap().numbers.to_vec();
            assert_eq!([result[0], result[2]], [6.5, 15.5]);
            assert!(!result[1].is_finite(), "{words:?}");
        }
    }
}

/// Vectors of other machines, one number at a time; 16 numbers stand for AVX-512.
#[test]
fn vectors_of_any_length_give_the_same() {
    for [input, output] in CHANNELS {
        let x = map(&random(&[1, 7, 9, input], 1.0));
        let weight = numbers(&random(&[9 * input + 1, output], 0.3));
        for words in WORDS {
            let input = match words {
                Words::F32 => x.numbers.to_vec(),
                Words::Bf16 => bf16::rounded(&x, Padding::default(), 2).0.to_vec(),
            };
            let run =
                |lanes: usize| with_lanes(&input, &weight, [x.dims()[3], output], words, lanes);
            assert!(run(4).iter().all(|x| x.is_finite()));
            assert_eq!(run(4), run(8));
            assert_eq!(run(4), run(16));
        }
    }
}

/// 3 by 3 over 7 by 9 positions, without padding.
fn with_lanes(
    input: &[f32],
    weight: &[f32],
    [channels, output]: [usize; 2],
    words: Words,
    lanes: usize,
) -> Vec<f32> {
    let registers = if lanes > 8 { 32 } else { 16 };
    let dense = Dense::for_vectors(weight, [3, channels, output], words, [lanes, registers]);
    let inside = lopsided([3, 3], [1, 1], [0; 4]);
    let steps = if words == Words::F32 { 1 } else { 2 };
    let size = [7, 9, words.of_position(channels) * steps];
    let mut out = vec![f32::NAN; 5 * 7 * output];
    let block = Block {
        call: Call {
            dense: &dense,
            input,
            geometry: Geometry::new(size, inside, [5, 7]),
            residual: None,
            activation: Activation::None,
        },
        first: 0,
        out: &mut out,
    };
    match (words, lanes) {
        (Words::F32, 4) => block.with(Singles(Portable::<4>)),
        (Words::F32, 8) => block.with(Singles(Portable::<8>)),
        (Words::F32, _) => block.with(Singles(Portable::<16>)),
        (Words::Bf16, 4) => block.with(Widened(Portable::<4>)),
        (Words::Bf16, 8) => block.with(Widened(Portable::<8>)),
        (Words::Bf16, _) => block.with(Widened(Portable::<16>)),
    }
    out
}

#[test]
fn what_does_not_fit_is_an_error() {
    for words in WORDS {
        let packed = Dense::new(&[0.0; 10 * 4], [3, 1, 4], words);
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
        // As many rows, in one line.
        let flat = lopsided([1, 9], [1, 1], [0, 4, 0, 4]);
        assert!(run(&x, flat, None).contains("9 rows"));
    }
}
