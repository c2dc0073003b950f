//! Integration of the ECG model on its limit cycle.
//!
//! McSharry et al. (eq. 1) move a point around the unit circle, one turn per beat, and let
//! `dz/dt = -sum_i a_i dtheta_i exp(-dtheta_i^2 / 2 b_i^2) - (z - z0)`. On the limit cycle the
//! angle is linear in time between R peaks, so angles are written as times here, which lets every
//! beat have an interval of its own: with `d = t - t_i` and width `w_i`, wave i contributes
//! `-A_i d / w_i^2 exp(-d^2 / 2 w_i^2)`, whose integral is a Gaussian of height `A_i`.

use super::beat::SAMPLES;
use super::rhythm::{Recording, SAMPLE_S};

/// Steps per sample: the pacing spike is narrower than a sample.
const SUBSTEPS: usize = 4;

/// Time before the window in which the state settles, in samples.
const LEAD_IN: usize = 40;

/// Rate at which the state relaxes to the baseline, per second; 1 in the paper.
const RELAXATION_PER_S: f64 = 1.0;

/// Beyond this many widths a wave no longer drives the state.
const REACH_WIDTHS: f64 = 5.0;

/// The window in millivolts, one value per sample.
pub(super) fn integrate(recording: &Recording) -> Vec<f64> {
    let step_s = SAMPLE_S / SUBSTEPS as f64;
    let mut time_s = -(LEAD_IN as f64) * SAMPLE_S;
    let mut state_mv = recording.baseline_mv(time_s);
    let mut samples = Vec::with_capacity(SAMPLES);
    for sample in 0..LEAD_IN + SAMPLES {
        if sample >= LEAD_IN {
            samples.push(state_mv);
        }
        for _ in 0..SUBSTEPS {
            // Midpoint of the step: second order where the drive dominates.
            let middle_s = time_s + step_s / 2.0;
            let pull = RELAXATION_PER_S * (recording.baseline_mv(middle_s) - state_mv);
            state_mv += step_s * (drive_mv_per_s(recording, middle_s) + pull);
            time_s += step_s;
        }
    }
    samples
}

/// The waves' contribution to the state per second.
fn drive_mv_per_s(recording: &Recording, time_s: f64) -> f64 {
    let mut sum = 0.0;
    for beat in &recording.beats {
        for wave in &beat.waves {
            let distance_s = time_s - beat.r_peak_s - wave.offset_s;
            let widths = distance_s / wave.width_s;
            if widths.abs() < REACH_WIDTHS {
                sum -= wave.amplitude_mv * widths / wave.width_s * (-0.5 * widths * widths).exp();
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::rhythm::{PlacedBeat, PlacedWave};
    use super::*;

    #[test]
    fn a_wave_reaches_its_height_at_its_place() {
        let recording = Recording {
            beats: vec![PlacedBeat {
                r_peak_s: 0.8,
                waves: vec![PlacedWave {
                    amplitude_mv: 1.2,
                    offset_s: -0.08,
                    width_s: 0.03,
                }],
            }],
            wander: (0.0, 0.2, 0.0),
        };
        let samples = integrate(&recording);
        let peak = (0..SAMPLES).max_by(|&a, &b| samples[a].total_cmp(&samples[b]));
        assert_eq!(peak, Some(90), "0.72 s at 125 Hz");
        // The relaxation of 1 per second takes a few percent of a wave this long.
        assert!((samples[90] - 1.2).abs() < 0.06, "{}", samples[90]);
        assert!(samples[0].abs() < 1e-9);
    }
}
