use super::*;
use crate::memory::Buffer;
use crate::simd::vectors::Vectorized;
use crate::simd::{dispatch, lanes};
use crate::testing::random;

struct Powers<'a> {
    fft: &'a RealFft,
    signals: &'a mut [f32],
    powers: &'a mut [f32],
}

impl Vectorized for Powers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.fft.powers(simd, self.signals, self.powers);
    }
}

fn powers(fft: &RealFft, signals: &[f32]) -> Vec<f32> {
    let mut powers = vec![f32::NAN; fft.bins() * lanes()];
    let mut overwritten = Buffer::take(signals.len());
    overwritten.copy_from_slice(signals);
    dispatch(Powers {
        fft,
        signals: &mut overwritten,
        powers: &mut powers,
    });
    powers
}

#[test]
fn powers_are_those_of_the_definitions_sum() {
    let lanes = lanes();
    for points in [8, 32, 128, 512] {
        let fft = RealFft::new(points);
        assert_eq!((fft.points(), fft.bins()), (points, points / 2 + 1));
        let signals = random(points * lanes, 1.0);
        let ours = powers(&fft, &signals);
        for lane in 0..lanes {
            let signal: Vec<f64> = (0..points)
                .map(|at| f64::from(signals[at * lanes + lane]))
                .collect();
            for bin in 0..fft.bins() {
                let (mut re, mut im) = (0.0, 0.0);
                for (at, value) in signal.iter().enumerate() {
                    let turn = TAU * ((at * bin) % points) as f64 / points as f64;
                    re += value * turn.cos();
                    im -= value * turn.sin();
                }
                let (ours, want) = (f64::from(ours[bin * lanes + lane]), re * re + im * im);
                // In magnitudes: a spectrum's rounding is relative to the signal's energy.
                let gap = (ours.sqrt() - want.sqrt()).abs();
                assert!(
                    gap < 1e-6 * (points as f64).sqrt(),
                    "{points} points, bin {bin}, lane {lane}: {ours} {want}"
                );
            }
        }
    }
}

#[test]
fn eight_points_by_hand() {
    // 1, 2, 3, 4, 0, 0, 0, 0: bin 0 has 10, bin 2 has -2 + 2i, bin 4 has -2.
    let lanes = lanes();
    let mut signals = vec![0.0; 8 * lanes];
    for (at, points) in signals.chunks_exact_mut(lanes).take(4).enumerate() {
        points.fill(at as f32 + 1.0);
    }
    let ours = powers(&RealFft::new(8), &signals);
    for (bin, want) in [(0, 100.0), (2, 8.0), (4, 4.0)] {
        assert!((ours[bin * lanes] - want).abs() < 1e-5, "{bin}: {ours:?}");
    }
}

#[test]
#[should_panic(expected = "twice a power of 4")]
fn other_lengths_are_refused() {
    RealFft::new(256);
}
