//! Labelled data from a seed: the interface of an application's generator, and streams of samples.
//!
//! A sample is a function of (seed, index) alone, so data sets can be made on any number of threads
//! and a load driver can repeat any request.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use switchyard_models::ModelError;

/// The data of one application.
pub trait Data: Sync {
    /// Number of classes; labels are below it.
    fn classes(&self) -> usize;

    /// Values in one sample, over all input tensors of the application.
    fn width(&self) -> usize;

    /// A sample of class `label`: its input tensors one after another, in the order of the
    /// application's card. Must draw on nothing but `rng`.
    fn draw(&self, label: usize, rng: &mut Pcg64) -> Vec<f32>;
}

/// One labelled sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Index of its class.
    pub label: usize,
    /// Its input tensors, one after another.
    pub values: Vec<f32>,
}

/// How often each class is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Shares by label; they sum to 1.
    shares: Vec<f64>,
}

/// An endless, repeatable stream of samples.
#[derive(Clone)]
pub struct Generator<'a> {
    data: &'a dyn Data,
    seed: u64,
    mix: Mix,
}

// === impl Mix ===

impl Mix {
    /// Shares proportional to `weights`, by label.
    ///
    /// # Errors
    /// A weight is negative or not finite, or all are 0.
    pub fn try_new(weights: &[f64]) -> Result<Self, ModelError> {
        let sum: f64 = weights.iter().sum();
        if weights.iter().any(|weight| *weight < 0.0) || !(sum.is_finite() && sum > 0.0) {
            let reason =
                format!("class weights {weights:?} must be finite, at least 0, and not all 0");
            return Err(ModelError::Training(reason));
        }
        Ok(Self {
            shares: weights.iter().map(|weight| weight / sum).collect(),
        })
    }

    /// Every class equally often.
    pub fn balanced(classes: usize) -> Self {
        Self {
            shares: vec![1.0 / classes as f64; classes],
        }
    }

    /// Shares by label; they sum to 1.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// A label.
    pub fn draw(&self, rng: &mut Pcg64) -> usize {
        let mut left: f64 = rng.random();
        for (label, share) in self.shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return label;
            }
        }
        // Rounding can leave a sliver above the last share.
        0
    }
}

// === impl Generator ===

impl<'a> Generator<'a> {
    /// A stream that is the same for the same data, seed and mix.
    pub fn new(data: &'a dyn Data, seed: u64, mix: Mix) -> Self {
        Self { data, seed, mix }
    }

    /// The sample at `index`, without walking there.
    pub fn sample(&self, index: u64) -> Sample {
        let mut rng = rng_at(self.seed, index);
        let label = self.mix.draw(&mut rng);
        Sample {
            label,
            values: self.data.draw(label, &mut rng),
        }
    }

    /// The samples `from..from + count`, made on all threads of the current rayon pool.
    pub fn samples(&self, from: u64, count: usize) -> Vec<Sample> {
        (from..from + count as u64)
            .into_par_iter()
            .map(|index| self.sample(index))
            .collect()
    }
}

/// Exactly `per_class` samples of each class, in order of class.
pub fn stratified(data: &dyn Data, seed: u64, per_class: usize) -> Vec<Sample> {
    (0..data.classes() * per_class)
        .into_par_iter()
        .map(|index| {
            let label = index / per_class;
            Sample {
                label,
                values: data.draw(label, &mut rng_at(seed, index as u64)),
            }
        })
        .collect()
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

    /// Two values: the label and a draw.
    struct Echo;

    impl Data for Echo {
        fn classes(&self) -> usize {
            3
        }

        fn width(&self) -> usize {
            2
        }

        fn draw(&self, label: usize, rng: &mut Pcg64) -> Vec<f32> {
            vec![label as f32, rng.random()]
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_samples() {
        let stream = |seed| Generator::new(&Echo, seed, Mix::balanced(3));
        let walked: Vec<Sample> = (0..40).map(|index| stream(7).sample(index)).collect();
        assert_eq!(walked, stream(7).samples(0, 40));
        assert_ne!(walked, stream(8).samples(0, 40));
        assert_ne!(walked[0], walked[1]);
    }

    #[test]
    fn the_mix_is_respected() {
        let mix = Mix::try_new(&[8.0, 1.0, 1.0]).unwrap();
        let mut counts = [0.0f64; 3];
        for sample in Generator::new(&Echo, 3, mix).samples(0, 4000) {
            assert_eq!(sample.label as f32, sample.values[0]);
            counts[sample.label] += 1.0 / 4000.0;
        }
        assert!((counts[0] - 0.8).abs() < 0.03, "{counts:?}");
        assert!((counts[1] - 0.1).abs() < 0.02, "{counts:?}");
    }

    #[test]
    fn a_mix_needs_weight() {
        assert!(Mix::try_new(&[0.0; 3]).is_err());
        assert!(Mix::try_new(&[-1.0, 2.0, 0.0]).is_err());
        assert!(Mix::try_new(&[]).is_err());
        let one = Mix::try_new(&[0.0, 0.0, 4.0]).unwrap();
        let stream = Generator::new(&Echo, 1, one);
        assert!(stream.samples(0, 20).iter().all(|s| s.label == 2));
    }

    #[test]
    fn a_stratified_set_is_in_order_of_class() {
        let labels: Vec<usize> = stratified(&Echo, 1, 2).iter().map(|s| s.label).collect();
        assert_eq!(labels, [0, 0, 1, 1, 2, 2]);
    }
}
