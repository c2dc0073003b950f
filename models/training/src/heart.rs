//! The heart application's data: single heartbeats from a dynamical ECG model.
//!
//! One beat is 187 samples at 125 Hz, the layout of the Kaggle cut of MIT-BIH, in millivolts. The
//! seven classes are those of the SneakPeek paper. Signals follow McSharry et al., "A dynamical
//! model for generating synthetic electrocardiogram signals" (2003): `beat` names the classes,
//! `waves` holds their morphologies, `rhythm` the patient and the beat intervals, `dynamics`
//! integrates the model, and `noise` adds the noise of a cheap electrode.

mod beat;
mod dynamics;
mod noise;
mod rhythm;
mod waves;

use rand_pcg::Pcg64;

pub use self::beat::{BeatClass, CLASSES, SAMPLE_RATE_HZ, SAMPLES};
use crate::data::Data;

/// Share of normal beats in the workload; the other classes share the rest evenly.
const NORMAL_SHARE: f64 = 0.8;

/// The application's data.
#[derive(Clone, Copy, Debug)]
pub struct Heart;

// === impl Heart ===

impl Data for Heart {
    fn classes(&self) -> usize {
        CLASSES
    }

    fn width(&self) -> usize {
        SAMPLES
    }

    /// 187 samples in millivolts.
    fn draw(&self, label: usize, rng: &mut Pcg64) -> Vec<f32> {
        // A label beyond the last class counts as a normal beat.
        let class = BeatClass::ALL.get(label).copied();
        let recording = rhythm::Recording::draw(class.unwrap_or(BeatClass::Normal), rng);
        let mut samples = dynamics::integrate(&recording);
        noise::add(&mut samples, rng);
        samples.iter().map(|&value| value as f32).collect()
    }
}

/// The mix of a monitor: 80 % normal beats, the other classes evenly.
pub fn workload_mix() -> [f64; CLASSES] {
    let mut shares = [(1.0 - NORMAL_SHARE) / (CLASSES - 1) as f64; CLASSES];
    shares[BeatClass::Normal as usize] = NORMAL_SHARE;
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::stratified;

    #[test]
    fn beats_are_finite_millivolts() {
        for beat in stratified(&Heart, 1, 50) {
            assert_eq!(beat.values.len(), SAMPLES);
            let sane = |mv: &f32| mv.is_finite() && mv.abs() < 20.0;
            assert!(beat.values.iter().all(sane));
        }
    }

    /// Classes differ: the nearest class mean is right more often than chance, and wrong often
    /// enough to need a network.
    #[test]
    fn classes_are_separable_but_not_by_their_means() {
        let mut means = vec![vec![0.0f32; SAMPLES]; CLASSES];
        for beat in stratified(&Heart, 11, 400) {
            for (mean, value) in means[beat.label].iter_mut().zip(&beat.values) {
                *mean += value / 400.0;
            }
        }
        let test = stratified(&Heart, 12, 100);
        let distance =
            |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum() };
        let right = test.iter().filter(|beat| {
            let nearest = (0..CLASSES).min_by(|&a, &b| {
                distance(&means[a], &beat.values).total_cmp(&distance(&means[b], &beat.values))
            });
            nearest == Some(beat.label)
        });
        let share = right.count() as f64 / test.len() as f64;
        assert!(
            (0.25..0.75).contains(&share),
            "nearest mean is right {share}"
        );
    }
}
