//! The difference between two policies on the same arrivals, seed by seed.

use serde::{Deserialize, Serialize};

use super::across::Estimate;

/// The difference of a policy from a baseline in one metric. Runs with the same seed have the same
/// arrivals, classes and deadlines, so pairing removes the variance between seeds, which the two
/// means contain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedEffect {
    /// Mean of the baseline.
    pub baseline: f64,
    /// Mean of the policy.
    pub mean: f64,
    /// Mean of the differences, with its 95 % confidence interval.
    pub difference: Estimate,
    /// The mean difference over the standard deviation of the differences (Cohen's d for pairs):
    /// around 0.2 is small, above 0.8 large. None if they do not vary.
    pub size: Option<f64>,
}

// === impl PairedEffect ===

impl PairedEffect {
    /// Of values by seed. None with fewer than two seeds for which both have a value.
    pub fn of(baseline: &[Option<f64>], other: &[Option<f64>]) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = baseline
            .iter()
            .zip(other)
            .filter_map(|(&one, &other)| Some((one?, other?)))
            .collect();
        let runs = pairs.len() as f64;
        let differences: Vec<f64> = pairs.iter().map(|(one, other)| other - one).collect();
        let difference = Estimate::of(&differences).filter(|of| of.runs > 1)?;
        let squares = differences
            .iter()
            .map(|d| (d - difference.mean) * (d - difference.mean));
        let deviation = (squares.sum::<f64>() / (runs - 1.0)).sqrt();
        Some(Self {
            baseline: pairs.iter().map(|(one, _)| one).sum::<f64>() / runs,
            mean: pairs.iter().map(|(_, other)| other).sum::<f64>() / runs,
            size: (deviation > 0.0).then(|| difference.mean / deviation),
            difference,
        })
    }

    /// Whether the difference is not significant: its 95 % confidence interval contains 0.
    pub fn is_noise(&self) -> bool {
        let half_width = self.difference.half_width.unwrap_or(f64::INFINITY);
        self.difference.mean.abs() <= half_width
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    /// The variance between seeds is larger than the difference, which has the same sign in each.
    #[test]
    fn pairing_removes_the_variance_between_seeds() {
        let (one, other) = ([10.0, 20.0, 30.0], [11.0, 22.0, 33.0]);
        let effect = PairedEffect::of(&some(&one), &some(&other)).unwrap();
        assert_eq!((effect.baseline, effect.mean), (20.0, 22.0));
        assert_eq!(effect.difference.mean, 2.0);
        // Deviation 1: t(2) = 4.303, times 1 / sqrt(3).
        assert!((effect.difference.half_width.unwrap() - 2.484).abs() < 1e-3);
        assert_eq!(effect.size, Some(2.0));
        assert!(effect.is_noise(), "three seeds are too few here");
        let more = PairedEffect::of(&some(&[one, one].concat()), &some(&[other, other].concat()));
        assert!(!more.unwrap().is_noise());
    }

    #[test]
    fn without_pairs_there_is_no_effect() {
        assert_eq!(PairedEffect::of(&some(&[1.0]), &some(&[2.0])), None);
        assert_eq!(
            PairedEffect::of(&[Some(1.0), None], &some(&[2.0, 3.0])),
            None
        );
        let same = PairedEffect::of(&some(&[1.0, 1.0]), &some(&[1.5, 1.5])).unwrap();
        assert_eq!((same.size, same.is_noise()), (None, false));
        let nothing = PairedEffect::of(&some(&[1.0, 1.0]), &some(&[1.0, 1.0])).unwrap();
        assert!(nothing.is_noise());
    }
}
