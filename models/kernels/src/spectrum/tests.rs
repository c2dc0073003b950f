use std::f64::consts::TAU;

use super::*;
use crate::testing::random;

const POINTS: usize = 128;

/// The powers of all bins, by the definition's sum.
fn powers(frame: &[f64]) -> Vec<f64> {
    let bins = 0..POINTS / 2 + 1;
    bins.map(|bin| {
        let (mut re, mut im) = (0.0, 0.0);
        for (at, value) in frame.iter().enumerate() {
            let turn = TAU * ((at * bin) % POINTS) as f64 / POINTS as f64;
            re += value * turn.cos();
            im += value * turn.sin();
        }
        re * re + im * im
    })
    .collect()
}

fn bands() -> Vec<Band> {
    let triangle = vec![0.25, 0.75, 1.0, 0.5];
    let band = |first, heights| Band { first, heights };
    vec![
        band(0, vec![1.0]),
        band(3, triangle.clone()),
        band(20, vec![]),
        band(61, triangle),
    ]
}

fn written(spec: &LogBands, samples: &[f32]) -> Vec<f32> {
    let frames = spec.frames.count(samples.len());
    let mut out = vec![f32::NAN; frames * spec.bands.len()];
    spec.write(samples, &mut out);
    out
}

#[test]
fn logarithms_are_those_of_the_definition() {
    // Windows shorter than a hop, of whole hops, and with a rest; padding longer than a hop.
    for (hop, left, window) in [(40, 0, 30), (20, 50, 60), (32, 16, 100), (128, 0, 128)] {
        let frames = Frames {
            hop,
            left,
            window: random(window, 1.0),
        };
        let spec = LogBands::new(frames, POINTS, bands(), 1e-3);
        // More frames than lanes, few, one and none.
        for samples in [hop * 21 + 5, hop * 3, 1, 0] {
            let samples = random(samples, 1.0);
            let ours = written(&spec, &samples);
            for (frame, ours) in ours.chunks_exact(4).enumerate() {
                let at = |i: usize| (frame * hop + i).checked_sub(left);
                let sample = |i| at(i).and_then(|at| samples.get(at)).copied();
                let values = spec.frames.window.iter().enumerate();
                let values =
                    values.map(|(i, w)| f64::from(*w) * f64::from(sample(i).unwrap_or(0.0)));
                let powers = powers(&values.collect::<Vec<_>>());
                for (band, ours) in spec.bands.iter().zip(ours) {
                    let heights = band.heights.iter().zip(&powers[band.first..]);
                    let power: f64 = heights.map(|(h, power)| f64::from(*h) * power).sum();
                    let want = (power + 1e-3).ln();
                    let gap = (f64::from(*ours) - want).abs();
                    assert!(gap < 2e-4, "frame {frame}: {ours} {want}");
                }
            }
        }
    }
}

#[test]
fn powers_add_up_to_the_energy_of_the_samples() {
    // Parseval's theorem; inner bins stand for two frequencies.
    let mut heights = vec![2.0; POINTS / 2 + 1];
    (heights[0], heights[POINTS / 2]) = (1.0, 1.0);
    let frames = Frames {
        hop: 100,
        left: 0,
        window: vec![1.0; 100],
    };
    let spec = LogBands::new(frames, POINTS, vec![Band { first: 0, heights }], 1e-30);
    let samples = random(1900, 1.0);
    for (samples, ours) in samples.chunks(100).zip(written(&spec, &samples)) {
        let energy: f32 = samples.iter().map(|sample| sample * sample).sum();
        assert!((ours - (energy * POINTS as f32).ln()).abs() < 1e-5);
    }
}

#[test]
fn a_frame_does_not_depend_on_others() {
    let frames = Frames {
        hop: 20,
        left: 10,
        window: random(50, 1.0),
    };
    let spec = LogBands::new(frames, POINTS, bands(), 1e-3);
    let mut samples = random(20 * 40, 1.0);
    let whole = written(&spec, &samples);
    // Frame 3 starts at sample 50, and becomes the first one of a signal with 10 zeros before.
    let (start, width) = (60, spec.bands.len());
    samples[50..60].fill(0.0);
    let rest = written(&spec, &samples[start..]);
    assert_eq!(whole[4 * width..], rest[width..]);
    // NaN stays in the frames that contain it: those from 80 - 10 - 50 on, to 80 + 10.
    samples[75] = f32::NAN;
    for (frame, values) in written(&spec, &samples).chunks_exact(width).enumerate() {
        let start = frame * 20;
        let inside = (start..start + 50).contains(&(75 + 10));
        // The band without weights is the floor's.
        assert_eq!(values[0].is_nan(), inside, "{frame}");
        assert_eq!(values[1].is_nan(), inside, "{frame}");
        assert!(values[2].is_finite());
    }
}
