//! Noise of the electrode and the wires: muscle noise, white noise, mains hum, a slow drift.

use rand::Rng;
use rand_distr::{Distribution, LogNormal, StandardNormal};
use rand_pcg::Pcg64;

use super::rhythm::SAMPLE_S;

/// Median of the white noise's standard deviation, in millivolts.
const WHITE_MV: f64 = 0.03;
/// Median of the muscle noise's standard deviation, in millivolts.
const MUSCLE_MV: f64 = 0.04;
/// Standard deviation of the logarithm of both.
const LEVEL_SPREAD: f64 = 0.6;
/// Share of its last value in the muscle noise's next value.
const MUSCLE_MEMORY: f64 = 0.6;
/// Largest amplitude of the mains hum, in millivolts.
const MAINS_MV_MAX: f64 = 0.06;
/// Largest drift over the window, in millivolts.
const DRIFT_MV_MAX: f64 = 0.3;

/// Adds noise to a window, in place.
pub(super) fn add(samples_mv: &mut [f64], rng: &mut Pcg64) {
    let level = LogNormal::new(0.0, LEVEL_SPREAD).expect("the spread is a positive constant");
    let white_mv = WHITE_MV * level.sample(rng);
    // Scaled so that MUSCLE_MV is the deviation of the coloured noise itself.
    let muscle_mv = MUSCLE_MV * level.sample(rng) * (1.0 - MUSCLE_MEMORY * MUSCLE_MEMORY).sqrt();
    let mains_mv = rng.random_range(0.0..MAINS_MV_MAX);
    let mains_hz = if rng.random_bool(0.5) { 50.0 } else { 60.0 };
    let mains_phase = rng.random_range(0.0..std::f64::consts::TAU);
    let drift_mv = rng.random_range(-DRIFT_MV_MAX..DRIFT_MV_MAX);
    // Muscle noise comes in a burst around a moment of the window.
    let burst = rng.random_range(0.0..1.0);
    let last = samples_mv.len().max(2) as f64 - 1.0;
    let mut muscle = 0.0;
    for (i, sample) in samples_mv.iter_mut().enumerate() {
        let share = i as f64 / last;
        let white: f64 = StandardNormal.sample(rng);
        let push: f64 = StandardNormal.sample(rng);
        muscle = MUSCLE_MEMORY * muscle + muscle_mv * push;
        let swell = 0.5 + (-8.0 * (share - burst) * (share - burst)).exp();
        let phase = std::f64::consts::TAU * mains_hz * SAMPLE_S * i as f64 + mains_phase;
        *sample += white_mv * white + swell * muscle + mains_mv * phase.sin() + drift_mv * share;
    }
}
