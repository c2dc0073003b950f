#![allow(clippy::unwrap_used)]
use candle_core::Var;

use super::*;

/// Made by `models/tests/parity/logmel.py`.
const REFERENCE: &str = include_str!("reference.txt");

/// The clip of the reference: exact in any language.
fn arithmetic_clip() -> Vec<f32> {
    (0..1600i64)
        .map(|i| (((i * 7919 + i * i * 31) % 2001 - 1000) as f64 / 2000.0) as f32)
        .collect()
}

fn tone(hz: f64, samples: usize) -> Vec<f32> {
    (0..samples)
        .map(|i| 0.1 * (TAU * hz * i as f64 / SAMPLE_RATE_HZ).sin() as f32)
        .collect()
}

fn matrix(clip: &[f32]) -> Vec<Vec<f32>> {
    let x = Tensor::new(clip, &Device::Cpu).unwrap();
    let frames = features(&x.unsqueeze(0).unwrap()).unwrap();
    frames.squeeze(0).unwrap().to_vec2().unwrap()
}

fn loudest(frame: &[f32]) -> usize {
    (0..BANDS)
        .max_by(|&a, &b| frame[a].total_cmp(&frame[b]))
        .unwrap()
}

#[test]
fn features_equal_numpys() {
    let reference: Vec<f32> = REFERENCE
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let ours = matrix(&arithmetic_clip()).concat();
    assert_eq!(ours.len(), reference.len());
    for (at, (ours, theirs)) in ours.iter().zip(&reference).enumerate() {
        assert!((ours - theirs).abs() < 1e-4, "{at}: {ours} {theirs}");
    }
}

#[test]
fn the_product_equals_the_transform() {
    // An odd number of frames, and a last hop that is not full.
    for samples in [1600, 16_000, 1130, 40] {
        let clip: Vec<f32> = arithmetic_clip()
            .into_iter()
            .cycle()
            .take(samples)
            .collect();
        let x = Tensor::from_vec(clip, (1, samples), &Device::Cpu).unwrap();
        let ours = features(&x).unwrap();
        let theirs = composed(&x).unwrap();
        assert_eq!(ours.dims(), theirs.dims());
        let gap = (ours - theirs).unwrap().abs().unwrap().max_all().unwrap();
        let gap: f32 = gap.to_scalar().unwrap();
        assert!(gap < 2e-3, "{samples} samples: {gap}");
    }
}

#[test]
fn a_tone_lands_in_its_band() {
    for (band, Band { first, heights }) in bands().iter().enumerate().skip(3) {
        let peak = (0..heights.len())
            .max_by(|&a, &b| heights[a].total_cmp(&heights[b]))
            .unwrap();
        let hz = (first + peak) as f64 * SAMPLE_RATE_HZ / POINTS as f64;
        let frames = matrix(&tone(hz, 1600));
        assert_eq!(loudest(&frames[5]), band, "{hz} Hz");
    }
    // By hand: 1,000 Hz is 999.99 mel; edges lie (2804.9 - 92.6) / 41 = 66.15 mel apart from
    // 92.64 on, so it lies 13.7 steps up, nearest to the centre of band 13 (14 steps).
    assert_eq!(loudest(&matrix(&tone(1000.0, 1600))[5]), 13);
}

#[test]
fn a_tone_has_the_power_of_its_window() {
    // A sine of amplitude a = 0.1 at the centre of bin 32 has a power of |a/2 sum w_i|^2 = (0.05 *
    // 200)^2 there. In the other bins of its band, the power falls as the window's spectrum does.
    let samples = tone(1000.0, 1600);
    let mut logarithms = vec![0.0; frames(samples.len()) * BANDS];
    LOG_BANDS.write(&samples, &mut logarithms);
    let share = |bins: f64| {
        let sum = |part: fn(f64) -> f64| -> f64 {
            let turn = |at: usize| TAU * bins * at as f64 / POINTS as f64;
            (0..WINDOW)
                .map(|at| f64::from(hann(at)) * part(turn(at)))
                .sum()
        };
        (sum(f64::cos).powi(2) + sum(f64::sin).powi(2)) / 200f64.powi(2)
    };
    let band = &bands()[13];
    let heights = band.heights.iter().enumerate();
    let powers = heights.map(|(at, height)| {
        let bins = (band.first + at) as f64 - 32.0;
        f64::from(*height) * 100.0 * share(bins)
    });
    let power: f64 = powers.sum();
    let ours = f64::from(logarithms[5 * BANDS + 13].exp());
    assert!((ours / power - 1.0).abs() < 0.01, "{ours} {power}");
}

#[test]
fn values_that_are_not_finite_are_found() {
    let mut clip = arithmetic_clip();
    assert!(all_finite(&clip) && all_finite(&[]));
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 777, 1599] {
            let value = std::mem::replace(&mut clip[at], odd);
            assert!(!all_finite(&clip), "{odd} at {at}");
            clip[at] = value;
        }
    }
}

#[test]
fn loudness_does_not_matter() {
    let clip = arithmetic_clip();
    let quiet: Vec<f32> = clip.iter().map(|sample| sample * 0.2).collect();
    for (a, b) in matrix(&clip).concat().iter().zip(matrix(&quiet).concat()) {
        assert!((a - b).abs() < 1e-2, "{a} {b}");
    }
    let silence = matrix(&[0.0; 800]).concat();
    assert!(silence.iter().all(|value| value.abs() < 1e-3));
}

#[test]
fn no_gradient_passes() {
    let x = Var::randn(0f32, 0.1, (2, 800), &Device::Cpu).unwrap();
    let sum = features(&x).unwrap().sum_all().unwrap();
    assert!(sum.backward().unwrap().get(&x).is_none());
}

#[test]
fn wrong_shapes_are_errors() {
    let x = Tensor::zeros((2, 3, 4), candle_core::DType::F32, &Device::Cpu).unwrap();
    assert!(features(&x).is_err());
    let x = Tensor::zeros((2, 800), candle_core::DType::F64, &Device::Cpu).unwrap();
    assert!(features(&x).is_err());
}

#[test]
fn pooling_finds_a_sound_wherever_it_lies() {
    let sound = |start: usize| {
        let mut clip = vec![0.0; 16_000];
        for (at, sample) in tone(500.0, 1600).into_iter().enumerate() {
            clip[start + at] += sample;
        }
        for (at, sample) in tone(3000.0, 2200).into_iter().enumerate() {
            clip[start + 1600 + at] += sample;
        }
        pooled(&clip)
    };
    let (early, late) = (sound(1600), sound(11_200));
    assert_eq!(early.len(), POOLED);
    assert_eq!(
        loudest(&early[..BANDS]),
        loudest(&matrix(&tone(500.0, 1600))[5])
    );
    let last = &early[(PARTS - 1) * BANDS..PARTS * BANDS];
    assert_eq!(loudest(last), loudest(&matrix(&tone(3000.0, 1600))[5]));
    for (a, b) in early.iter().zip(&late) {
        assert!((a - b).abs() < 0.01, "{a} {b}");
    }
    assert!(pooled(&[]).iter().all(|value| *value == 0.0));
    assert!(pooled(&[0.0; 16_000]).iter().all(|value| value.is_finite()));
}
