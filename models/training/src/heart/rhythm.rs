//! The patient: heart rate, beat intervals around the beat in question, electrode placement.

use rand::Rng;
use rand_distr::{Distribution, LogNormal, Normal};
use rand_pcg::Pcg64;

use super::beat::{BeatClass, SAMPLE_RATE_HZ};
use super::waves::{self, BeatWave};

/// Seconds between two samples.
pub(super) const SAMPLE_S: f64 = 1.0 / SAMPLE_RATE_HZ;

/// Where the R peak of the beat lies in the window, in seconds.
const R_PEAK_S: f64 = 0.40;
/// Largest error of the detector that cut the window, in seconds.
const R_PEAK_JITTER_S: f64 = 0.10;

/// A beat of the recording: waves as seen by the lead, placed in time.
#[derive(Clone, Debug)]
pub(super) struct PlacedBeat {
    /// Its R peak in seconds from the window's first sample.
    pub(super) r_peak_s: f64,
    /// Waves projected onto the lead.
    pub(super) waves: Vec<PlacedWave>,
}

/// A wave as the lead sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedWave {
    /// Height in millivolts.
    pub(super) amplitude_mv: f64,
    /// Centre relative to the beat's R peak, in seconds.
    pub(super) offset_s: f64,
    /// Standard deviation in seconds.
    pub(super) width_s: f64,
}

/// One window of ECG, before noise.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    /// The beat before, the beat in question, two beats after.
    pub(super) beats: Vec<PlacedBeat>,
    /// Respiration: amplitude in millivolts, frequency in hertz, phase in radians.
    pub(super) wander: (f64, f64, f64),
}

/// Electrode placement: the lead's direction, and its conductance.
struct Lead {
    axis_deg: f64,
    gain: f64,
}

// === impl Recording ===

impl Recording {
    /// Draws a patient with a beat of `class` in the window.
    pub(super) fn draw(class: BeatClass, rng: &mut Pcg64) -> Self {
        let lead = Lead::draw(rng);
        let rr_s = 60.0 / rng.random_range(52.0..104.0);
        let variability = Normal::new(1.0, 0.035).expect("the spread is a positive constant");
        let (before, after) = coupling(class, rng);
        let before_s = rr_s * before * variability.sample(rng);
        let after_s = rr_s * after * variability.sample(rng);
        let later_s = rr_s * variability.sample(rng);

        let own = waves::draw(class, rng);
        // Blocks and pacing last; premature beats occur among normal ones.
        let around = match class {
            BeatClass::Atrial | BeatClass::Ventricular | BeatClass::Fusion => {
                waves::draw(BeatClass::Normal, rng)
            }
            _ => own.clone(),
        };
        let r_peak_s = R_PEAK_S + rng.random_range(-R_PEAK_JITTER_S..R_PEAK_JITTER_S);
        let placed = |at_s: f64, waves: &[BeatWave]| PlacedBeat {
            r_peak_s: at_s,
            waves: waves.iter().map(|wave| lead.see(wave, rr_s)).collect(),
        };
        let beats = vec![
            placed(r_peak_s - before_s, &around),
            placed(r_peak_s, &own),
            placed(r_peak_s + after_s, &around),
            placed(r_peak_s + after_s + later_s, &around),
        ];
        let wander = (
            rng.random_range(0.02..0.35),
            rng.random_range(0.15..0.45),
            rng.random_range(0.0..std::f64::consts::TAU),
        );
        Self { beats, wander }
    }

    /// The baseline z0 of McSharry's model at a time, in millivolts.
    pub(super) fn baseline_mv(&self, time_s: f64) -> f64 {
        let (amplitude_mv, frequency_hz, phase) = self.wander;
        amplitude_mv * (std::f64::consts::TAU * frequency_hz * time_s + phase).sin()
    }
}

/// Intervals before and after the beat as shares of the patient's RR interval: premature beats
/// come early and, where the sinus node is not reset, are followed by a pause.
fn coupling(class: BeatClass, rng: &mut Pcg64) -> (f64, f64) {
    match class {
        BeatClass::Atrial => (rng.random_range(0.58..0.84), rng.random_range(0.98..1.25)),
        BeatClass::Ventricular => {
            let before = rng.random_range(0.55..0.88);
            (before, 2.0 - before)
        }
        BeatClass::Fusion => {
            let before = rng.random_range(0.85..1.0);
            (before, 2.0 - before)
        }
        _ => (1.0, 1.0),
    }
}

// === impl Lead ===

impl Lead {
    fn draw(rng: &mut Pcg64) -> Self {
        let axis = Normal::new(45.0, 24.0).expect("the spread is a positive constant");
        let gain = LogNormal::new(0.0, 0.3).expect("the spread is a positive constant");
        // Some electrodes are swapped.
        let turned = if rng.random_bool(0.05) { 180.0 } else { 0.0 };
        Self {
            axis_deg: axis.sample(rng) + turned,
            gain: gain.sample(rng),
        }
    }

    /// Projects a wave and fits its timing to the heart rate.
    fn see(&self, wave: &BeatWave, rr_s: f64) -> PlacedWave {
        // Atrial and repolarisation times follow the heart rate as in Bazett's formula; the width
        // of the QRS complex does not.
        let far = wave.offset_ms.abs() > 100.0;
        let stretch = if far { rr_s.sqrt() } else { 1.0 };
        PlacedWave {
            amplitude_mv: self.gain
                * wave.amplitude_mv
                * (wave.axis_deg - self.axis_deg).to_radians().cos(),
            offset_s: stretch * wave.offset_ms / 1e3,
            width_s: stretch * wave.width_ms / 1e3,
        }
    }
}
