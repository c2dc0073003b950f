//! Values by seed: their mean, and the 95 % interval of formulas over them.

/// Quantiles of Student's t at 0.975, for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The normal distribution's, for more degrees.
const Z_975: f64 = 1.96;

/// A mean and the deviation of each seed from it. Seeds of two samples have the same arrivals, so that
/// deviations are combined seed by seed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) mean: f64,
    /// By seed. Empty: one value, without an interval.
    deviations: Vec<f64>,
}

// === impl Sample ===

impl Sample {
    /// One value.
    pub(crate) fn constant(mean: f64) -> Self {
        let deviations = Vec::new();
        Self { mean, deviations }
    }

    /// Values by seed, with their mean. Seeds without a value count as the mean.
    pub(crate) fn new(mean: f64, values: &[Option<f64>]) -> Self {
        let deviation = |value: &Option<f64>| value.map_or(0.0, |value| value - mean);
        Self {
            mean,
            deviations: match values.len() {
                0 | 1 => Vec::new(),
                _ => values.iter().map(deviation).collect(),
            },
        }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.with(other, self.mean - other.mean, |one, other| one - other)
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, self.mean + other.mean, |one, other| one + other)
    }

    /// The ratio of the means; its deviations to first order (the delta method).
    pub(crate) fn over(&self, other: &Self) -> Self {
        let ratio = self.mean / other.mean;
        self.with(other, ratio, |one, by| (one - ratio * by) / other.mean)
    }

    /// The mean of samples over the same seeds.
    pub(crate) fn mean_of(samples: &[Self]) -> Self {
        let count = samples.len() as f64;
        let zero = Self::constant(0.0);
        let sum = samples.iter().fold(zero, |sum, sample| {
            sum.with(sample, sum.mean + sample.mean, |one, other| one + other)
        });
        Self {
            mean: sum.mean / count,
            deviations: sum.deviations.iter().map(|sum| sum / count).collect(),
        }
    }

    fn with(&self, other: &Self, mean: f64, combine: impl Fn(f64, f64) -> f64) -> Self {
        let seeds = self.deviations.len().max(other.deviations.len());
        let of = |sample: &Self, seed: usize| sample.deviations.get(seed).copied().unwrap_or(0.0);
        let deviations = (0..seeds).map(|seed| combine(of(self, seed), of(other, seed)));
        Self {
            mean,
            deviations: deviations.collect(),
        }
    }

    /// Half the width of the 95 % interval; none for one value.
    pub(crate) fn half_width(&self) -> Option<f64> {
        let seeds = self.deviations.len();
        let degrees = seeds.checked_sub(1).filter(|&degrees| degrees > 0)?;
        let squares: f64 = self.deviations.iter().map(|d| d * d).sum();
        let error = (squares / degrees as f64 / seeds as f64).sqrt();
        Some(T_975.get(degrees - 1).copied().unwrap_or(Z_975) * error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        Sample::new(mean, &values)
    }

    #[test]
    fn an_interval_by_hand() {
        // Mean 3, sample variance 2.5, t(4) = 2.776: 2.776 * sqrt(2.5 / 5).
        let half_width = sample(&[1.0, 2.0, 3.0, 4.0, 5.0]).half_width().unwrap();
        assert!((half_width - 1.963).abs() < 1e-3);
        assert_eq!(sample(&[7.0]).half_width(), None);
        assert_eq!(Sample::constant(7.0).half_width(), None);
    }

    /// Both vary alike: their difference and their ratio do not vary.
    #[test]
    fn pairs_lose_the_variance_between_seeds() {
        let (one, other) = (sample(&[10.0, 20.0, 30.0]), sample(&[11.0, 21.0, 31.0]));
        let difference = other.minus(&one);
        assert_eq!((difference.mean, difference.half_width()), (1.0, Some(0.0)));
        let twice = sample(&[20.0, 40.0, 60.0]).over(&one);
        assert_eq!((twice.mean, twice.half_width()), (2.0, Some(0.0)));
    }

    #[test]
    fn a_mean_over_points_and_a_constant_keep_the_seeds() {
        let opposite = [sample(&[1.0, 3.0]), sample(&[3.0, 1.0])];
        let mean = Sample::mean_of(&opposite);
        assert_eq!((mean.mean, mean.half_width()), (2.0, Some(0.0)));
        let above = sample(&[1.0, 3.0]).minus(&Sample::constant(1.0));
        assert_eq!(above.mean, 1.0);
        assert_eq!(above.half_width(), sample(&[1.0, 3.0]).half_width());
    }
}
