//! Latency distributions in bounded memory.

use serde::{Deserialize, Serialize};

/// Significant digits of percentiles.
const DIGITS: u8 = 3;

/// Larger values are counted as this one: a bit more than a day of microseconds.
const VALUE_MAX: u64 = 1 << 37;

/// A histogram of integers in logarithmic buckets. It grows with the range of its values, not with
/// their number.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    max: u64,
}

/// A distribution of latencies. Mean and maximum are exact; percentiles are rounded down to their
/// bucket, by 0.1 % at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Number of answers.
    pub count: u64,
    /// Mean in milliseconds.
    pub mean_ms: f64,
    /// Median in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile in milliseconds.
    pub p95_ms: f64,
    /// 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// Longest in milliseconds.
    pub max_ms: f64,
    /// The distribution function as (milliseconds, share), for plots.
    pub cdf: Vec<(f64, f64)>,
}

// === impl Histogram ===

impl Default for Histogram {
    fn default() -> Self {
        let mut buckets = hdrhistogram::Histogram::new(DIGITS).expect("3 digits are allowed");
        buckets.auto(true);
        Self { buckets, max: 0 }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, value: u64) {
        let value = value.min(VALUE_MAX);
        self.max = self.max.max(value);
        if self.buckets.record(value).is_err() {
            // Without memory to grow, the value counts as the largest one.
            self.buckets.saturating_record(value);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Fails only if the histogram may not resize, and this one may.
        let _ = self.buckets.add(&other.buckets);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        let value = self.buckets.value_at_quantile(quantile);
        self.buckets.lowest_equivalent(value)
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Of latencies in microseconds that add up to `sum_us`.
    pub(crate) fn latencies(&self, sum_us: u64) -> Latencies {
        let ms = |us: u64| us as f64 / 1e3;
        let count = self.buckets.len();
        if count == 0 {
            return Latencies::default();
        }
        let quantile_ms = |quantile| ms(self.quantile(quantile));
        let cdf = (1..=50u32).map(|i| f64::from(i) / 50.0);
        let tail = [0.99, 0.995, 0.999];
        let mut shares: Vec<f64> = cdf.chain(tail).collect();
        shares.sort_by(f64::total_cmp);
        Latencies {
            count,
            mean_ms: ms(sum_us) / count as f64,
            p50_ms: quantile_ms(0.5),
            p95_ms: quantile_ms(0.95),
            p99_ms: quantile_ms(0.99),
            max_ms: ms(self.max),
            cdf: shares
                .into_iter()
                .map(|share| (quantile_ms(share), share))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut histogram = Histogram::default();
        let values = 1..=100_000u64;
        values.clone().for_each(|us| histogram.record(us));
        let latencies = histogram.latencies(values.sum());
        for (got, want) in [
            (latencies.p50_ms, 50.0),
            (latencies.p95_ms, 95.0),
            (latencies.p99_ms, 99.0),
            (latencies.max_ms, 100.0),
        ] {
            assert!((got / want - 1.0).abs() <= 1e-3, "{got} is not {want}");
        }
        assert_eq!(latencies.mean_ms, 50.000_5);
    }

    #[test]
    fn a_sum_of_histograms_counts_both() {
        let (mut one, mut two) = (Histogram::default(), Histogram::default());
        one.record(10);
        two.record(5_000_000);
        one.add(&two);
        assert_eq!(one.latencies(5_000_010).count, 2);
        assert_eq!(one.max(), 5_000_000);
        assert_eq!(one.quantile(0.5), 10);
    }

    #[test]
    fn values_above_the_limit_are_counted_as_the_limit() {
        let mut histogram = Histogram::default();
        histogram.record(u64::MAX);
        assert_eq!(histogram.latencies(0).count, 1);
    }
}
