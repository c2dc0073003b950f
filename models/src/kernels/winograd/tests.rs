#![allow(clippy::unwrap_used)]
use candle_core::Tensor;

use super::super::dense::{Dense, Words};
use super::super::simd::Portable;
use super::super::testing::{map, numbers, random};
use super::*;

/// Windows of which some lie outside the picture on some sides.
fn windows() -> [Window2d; 4] {
    let with = |padding| Window2d {
        padding,
        ..Window2d::centred(3, 1)
    };
    let [top, left, bottom, right] = [2, 0, 0, 1];
    let lopsided = Padding {
        top,
        left,
        bottom,
        right,
    };
    let wide = Padding {
        bottom: 3,
        ..lopsided
    };
    [
        Window2d::centred(3, 1),
        with(Padding::default()),
        with(lopsided),
        with(wide),
    ]
}

/// Also channels that fill no vector, lines and columns that fill no tile, and more tiles in a line
/// than a block has.
#[test]
fn results_are_those_of_the_dense_convolution() {
    for [height, width] in [[3, 3], [4, 4], [8, 6], [7, 9], [5, 240]] {
        for [input, output] in [[16, 16], [3, 7], [20, 33], [16, 70]] {
            let x = map(&random(&[2, height, width, input], 1.0));
            let weight = numbers(&random(&[9 * input + 1, output], 0.3));
            let theirs = Dense::new(&weight, [3, input, output], Words::F32);
            let ours = Winograd::new(&weight, [input, output]);
            for window in windows() {
                let none = Activation::None;
                let theirs = theirs.forward(&x, window, None, none).unwrap();
                let ours = ours.forward(&x, window, None, none).unwrap();
                assert_eq!(ours.dims(), theirs.dims());
                for (a, b) in ours.numbers.iter().zip(&*theirs.numbers) {
                    assert!((a - b).abs() < 1e-4, "{:?} {window:?}: {a} {b}", x.dims());
                }
            }
        }
    }
}

#[test]
fn what_follows_is_the_same_arithmetic() {
    let (window, [input, output]) = (Window2d::centred(3, 1), [16, 40]);
    let weight = numbers(&random(&[9 * input + 1, output], 0.3));
    let winograd = Winograd::new(&weight, [input, output]);
    let x = map(&random(&[2, 9, 11, input], 1.0));
    let residual = map(&random(&[2, 9, 11, output], 1.0));
    let plain = winograd.forward(&x, window, None, Activation::None);
    let plain = plain.unwrap();
    for activation in [Activation::None, Activation::Relu, Activation::Silu] {
        let fused = winograd.forward(&x, window, Some(&residual), activation);
        let sums = plain.numbers.iter().zip(&*residual.numbers);
        let mut apart: Vec<f32> = sums.map(|(a, b)| a + b).collect();
        match activation {
            Activation::None => {}
            Activation::Relu => apart.iter_mut().for_each(|x| *x = x.max(0.0)),
            Activation::Silu => gates::silu(&mut apart),
        }
        assert_eq!(*fused.unwrap().numbers, apart, "{activation:?}");
    }
}

/// Bit for bit, as everywhere.
#[test]
fn a_picture_does_not_depend_on_its_batch_or_threads() {
    let pool = |threads| {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    };
    let (window, [input, output]) = (Window2d::centred(3, 1), [24, 40]);
    let weight = numbers(&random(&[9 * input + 1, output], 0.1));
    let winograd = Winograd::new(&weight, [input, output]);
    let x = random(&[5, 33, 31, input], 1.0);
    let run = |x: &Tensor| {
        let result = winograd.forward(&map(x), window, None, Activation::Relu);
        result.unwrap().numbers.to_vec()
    };
    let together = pool(1).install(|| run(&x));
    assert_eq!(together, pool(3).install(|| run(&x)));
    let each = together.len() / 5;
    for (i, picture) in together.chunks_exact(each).enumerate() {
        assert_eq!(picture, run(&x.narrow(0, i, 1).unwrap()), "{i}");
    }
}

/// Other vectors than this machine's: the same numbers within rounding.
#[test]
fn any_vectors_give_the_same() {
    let (window, [input, output]) = (Window2d::centred(3, 1), [17, 21]);
    let weight = numbers(&random(&[9 * input + 1, output], 0.3));
    let x = map(&random(&[1, 6, 5, input], 1.0));
    let own = Winograd::new(&weight, [input, output]);
    let own = own.forward(&x, window, None, Activation::None).unwrap();
    for (lanes, registers) in [(4, 16), (16, 32)] {
        let winograd = Winograd::for_vectors(&weight, [input, output], [lanes, registers]);
        let padding = Padding {
            top: 1,
            left: 1,
            bottom: 1,
            right: 2,
        };
        let (input, size) = padded(&x, padding).unwrap();
        let mut out = vec![f32::NAN; own.numbers.len()];
        let block = Block {
            call: Call {
                winograd: &winograd,
                input: &input,
                size,
                columns: 5,
                residual: None,
                activation: Activation::None,
            },
            picture: 0,
            line: 0,
            from: 0,
            out: &mut out,
        };
        match lanes {
            4 => block.run(Portable::<4>),
            _ => block.run(Portable::<16>),
        }
        for (a, b) in out.iter().zip(&*own.numbers) {
            assert!((a - b).abs() < 1e-4, "{lanes}: {a} {b}");
        }
    }
}

#[test]
fn it_suits_what_it_was_made_for() {
    let suits =
        |kernel, stride, channels| Winograd::suits(Window2d::centred(kernel, stride), channels);
    assert!(suits(3, 1, [32, 32]) && suits(3, 1, [256, 256]));
    assert!(!suits(3, 2, [64, 64]) && !suits(1, 1, [64, 64]) && !suits(5, 1, [64, 64]));
    assert!(!suits(3, 1, [16, 64]) && !suits(3, 1, [512, 512]));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let winograd = Winograd::new(&[0.0; 9 * 2 * 3 + 3], [2, 3]);
    let x = map(&random(&[1, 5, 5, 2], 1.0));
    let forward = |x: &Map, window| winograd.forward(x, window, None, Activation::None);
    assert!(forward(&x, Window2d::centred(3, 1)).is_ok());
    assert!(forward(&x, Window2d::centred(3, 2)).is_err());
    assert!(forward(&x, Window2d::centred(1, 1)).is_err());
    let other = map(&random(&[1, 5, 5, 4], 1.0));
    assert!(forward(&other, Window2d::centred(3, 1)).is_err());
}
