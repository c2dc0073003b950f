//! The heart application's data: single heartbeats from a dynamical ECG model.
//!
//! One beat is 187 samples at 125 Hz, the layout of the Kaggle cut of MIT-BIH, in millivolts. The
//! seven classes are those of the SneakPeek paper. Signals follow McSharry et al., "A dynamical
//! model for generating synthetic electrocardiogram signals" (2003): `waves` holds the class
//! morphologies, `rhythm` the patient and the beat intervals, `dynamics` integrates the model,
//! and `noise` adds what a cheap electrode adds.
//!
//! Every beat is a function of (seed, index) alone, so data sets can be made on any number of
//! threads and a load driver can repeat any request.

mod dynamics;
mod noise;
mod rhythm;
mod waves;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::error::ModelError;

/// Samples of one beat.
pub const SAMPLES: usize = 187;

/// Samples per second.
pub const SAMPLE_RATE_HZ: f64 = 125.0;

/// Number of beat classes.
pub const CLASSES: usize = 7;

/// Share of normal beats in the workload; the other classes share the rest evenly.
const NORMAL_SHARE: f64 = 0.8;

/// A beat class. Its discriminant is the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatClass {
    /// Normal.
    Normal,
    /// Left bundle branch block.
    LeftBlock,
    /// Right bundle branch block.
    RightBlock,
    /// Atrial premature.
    Atrial,
    /// Ventricular premature.
    Ventricular,
    /// Fusion of a normal and a ventricular beat.
    Fusion,
    /// Paced.
    Paced,
}

/// How often each class is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Shares by label; they sum to 1.
    shares: [f64; CLASSES],
}

/// One labelled beat.
#[derive(Clone, Debug, PartialEq)]
pub struct Beat {
    /// Index of its class.
    pub label: usize,
    /// 187 samples in millivolts.
    pub samples: Vec<f32>,
}

/// An endless, repeatable stream of beats.
#[derive(Clone, Debug)]
pub struct Generator {
    seed: u64,
    mix: Mix,
    next: u64,
}

// === impl BeatClass ===

impl BeatClass {
    /// Every class, in order of label.
    pub const ALL: [Self; CLASSES] = [
        Self::Normal,
        Self::LeftBlock,
        Self::RightBlock,
        Self::Atrial,
        Self::Ventricular,
        Self::Fusion,
        Self::Paced,
    ];

    /// The annotation letter of MIT-BIH.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Normal => "N",
            Self::LeftBlock => "L",
            Self::RightBlock => "R",
            Self::Atrial => "A",
            Self::Ventricular => "V",
            Self::Fusion => "F",
            Self::Paced => "P",
        }
    }
}

// === impl Mix ===

impl Mix {
    /// Shares by label.
    ///
    /// # Errors
    /// A share is negative or not finite, or all are 0.
    pub fn try_new(weights: [f64; CLASSES]) -> Result<Self, ModelError> {
        let sum: f64 = weights.iter().sum();
        if weights.iter().any(|weight| *weight < 0.0) || !(sum.is_finite() && sum > 0.0) {
            let reason = format!("class weights {weights:?} make no distribution");
            return Err(ModelError::Training(reason));
        }
        Ok(Self {
            shares: weights.map(|weight| weight / sum),
        })
    }

    /// Every class equally often.
    pub fn balanced() -> Self {
        Self {
            shares: [1.0 / CLASSES as f64; CLASSES],
        }
    }

    /// What a monitor sees: 80 % normal beats, the other classes evenly.
    pub fn workload() -> Self {
        let mut shares = [(1.0 - NORMAL_SHARE) / (CLASSES - 1) as f64; CLASSES];
        shares[BeatClass::Normal as usize] = NORMAL_SHARE;
        Self { shares }
    }

    /// Shares by label; they sum to 1.
    pub fn shares(&self) -> &[f64; CLASSES] {
        &self.shares
    }

    fn draw(&self, rng: &mut Pcg64) -> BeatClass {
        let mut left: f64 = rng.random();
        for class in BeatClass::ALL {
            left -= self.shares[class as usize];
            if left < 0.0 {
                return class;
            }
        }
        // Rounding can leave a sliver above the last share.
        BeatClass::Normal
    }
}

// === impl Generator ===

impl Generator {
    /// A stream that is the same for the same seed and mix.
    pub fn new(seed: u64, mix: Mix) -> Self {
        Self { seed, mix, next: 0 }
    }

    /// The beat at `index`, without walking there.
    pub fn beat(&self, index: u64) -> Beat {
        let mut rng = rng_at(self.seed, index);
        let class = self.mix.draw(&mut rng);
        beat_of(class, &mut rng)
    }

    /// The beats `from..from + count`, made on all threads of the current rayon pool.
    pub fn beats(&self, from: u64, count: usize) -> Vec<Beat> {
        (from..from + count as u64)
            .into_par_iter()
            .map(|index| self.beat(index))
            .collect()
    }
}

impl Iterator for Generator {
    type Item = Beat;

    fn next(&mut self) -> Option<Beat> {
        let beat = self.beat(self.next);
        self.next += 1;
        Some(beat)
    }
}

/// Exactly `per_class` beats of each class, in order of class.
pub fn stratified(seed: u64, per_class: usize) -> Vec<Beat> {
    (0..CLASSES * per_class)
        .into_par_iter()
        .map(|index| {
            let class = BeatClass::ALL[index / per_class];
            beat_of(class, &mut rng_at(seed, index as u64))
        })
        .collect()
}

fn beat_of(class: BeatClass, rng: &mut Pcg64) -> Beat {
    let recording = rhythm::Recording::draw(class, rng);
    let mut samples = dynamics::integrate(&recording);
    noise::add(&mut samples, rng);
    Beat {
        label: class as usize,
        samples: samples.iter().map(|&value| value as f32).collect(),
    }
}

/// An independent random stream per (seed, index).
fn rng_at(seed: u64, index: u64) -> Pcg64 {
    Pcg64::seed_from_u64(mixed(seed ^ mixed(index)))
}

/// SplitMix64's output function: neighbouring inputs give unrelated outputs.
fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_beats() {
        let walked: Vec<Beat> = Generator::new(7, Mix::workload()).take(40).collect();
        let jumped = Generator::new(7, Mix::workload()).beats(0, 40);
        assert_eq!(walked, jumped);
        let other: Vec<Beat> = Generator::new(8, Mix::workload()).take(40).collect();
        assert_ne!(walked, other);
    }

    #[test]
    fn beats_are_finite_millivolts() {
        for beat in stratified(1, 50) {
            assert_eq!(beat.samples.len(), SAMPLES);
            assert!(
                beat.samples
                    .iter()
                    .all(|mv| mv.is_finite() && mv.abs() < 20.0)
            );
        }
    }

    #[test]
    fn the_mix_is_respected() {
        let mut counts = [0.0f64; CLASSES];
        for beat in Generator::new(3, Mix::workload()).beats(0, 4000) {
            counts[beat.label] += 1.0 / 4000.0;
        }
        assert!((counts[0] - 0.8).abs() < 0.03, "{counts:?}");
        for share in &counts[1..] {
            assert!((share - 0.2 / 6.0).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn a_mix_needs_weight() {
        assert!(Mix::try_new([0.0; CLASSES]).is_err());
        assert!(Mix::try_new([-1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]).is_err());
        let one = Mix::try_new([0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
        assert!(Generator::new(1, one).take(20).all(|beat| beat.label == 2));
    }

    /// Classes differ: the nearest class mean is right more often than chance, and wrong often
    /// enough that a network is needed.
    #[test]
    fn classes_are_separable_but_not_by_their_means() {
        let mut means = vec![vec![0.0f32; SAMPLES]; CLASSES];
        for beat in stratified(11, 400) {
            for (mean, value) in means[beat.label].iter_mut().zip(&beat.samples) {
                *mean += value / 400.0;
            }
        }
        let test = stratified(12, 100);
        let distance =
            |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum() };
        let right = test.iter().filter(|beat| {
            let nearest = (0..CLASSES).min_by(|&a, &b| {
                distance(&means[a], &beat.samples).total_cmp(&distance(&means[b], &beat.samples))
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
