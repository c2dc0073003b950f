//! From repeated measurements to percentiles.

/// Percentiles and mean of one cell, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p50_us: u64,
    pub(crate) p95_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) mean_us: u64,
}

/// Percentiles by nearest rank: the smallest sample that at least the given share of all samples
/// does not exceed.
///
/// This rank is cautious for few samples: below 20 samples the 95th percentile is the largest,
/// below 100 the 99th is. A sample of 0 us counts as 1 us, so that no plan takes work for free.
pub(crate) fn percentiles(mut samples_us: Vec<u64>) -> Percentiles {
    samples_us.sort_unstable();
    let rank = |percent: usize| {
        let rank = (samples_us.len() * percent).div_ceil(100);
        let sample = samples_us.get(rank.saturating_sub(1));
        sample.copied().unwrap_or_default().max(1)
    };
    Percentiles {
        p50_us: rank(50),
        p95_us: rank(95),
        p99_us: rank(99),
        mean_us: mean(&samples_us).max(1),
    }
}

/// Rounded to the nearest; 0 if there are no samples.
fn mean(samples_us: &[u64]) -> u64 {
    let count = samples_us.len() as u64;
    let sum: u64 = samples_us.iter().sum();
    (sum + count / 2).checked_div(count).unwrap_or_default()
}

/// Whether the median is known to within this share of itself, with 95 % confidence: by the order
/// statistics that enclose it, for any distribution.
pub(crate) fn is_settled(samples_us: &[u64], within: f64) -> bool {
    let n = samples_us.len();
    if n < 10 {
        return false;
    }
    let mut sorted = samples_us.to_vec();
    sorted.sort_unstable();
    // A binomial of n draws stays between these ranks: n / 2 +- 1.96 sqrt(n) / 2.
    let half = (0.98 * (n as f64).sqrt()).ceil() as usize;
    let (low, high) = (n / 2 - half.min(n / 2), (n / 2 + half).min(n - 1));
    let spread = sorted[high] - sorted[low];
    spread as f64 <= 2.0 * within * sorted[n / 2] as f64
}

/// Lowers each cell to the smallest cell after it. A smaller batch never takes longer than a larger
/// one; if it was measured to, another program used the core, and such noise only adds time.
/// Interpolation between batches is monotone afterwards.
pub(crate) fn make_monotone<'a>(
    ascending_batches: impl DoubleEndedIterator<Item = &'a mut Percentiles>,
) {
    let mut ceiling: Option<Percentiles> = None;
    for cell in ascending_batches.rev() {
        if let Some(ceiling) = ceiling {
            cell.p50_us = cell.p50_us.min(ceiling.p50_us);
            cell.p95_us = cell.p95_us.min(ceiling.p95_us);
            cell.p99_us = cell.p99_us.min(ceiling.p99_us);
            cell.mean_us = cell.mean_us.min(ceiling.mean_us);
        }
        ceiling = Some(*cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(p50_us: u64, p95_us: u64, p99_us: u64, mean_us: u64) -> Percentiles {
        Percentiles {
            p50_us,
            p95_us,
            p99_us,
            mean_us,
        }
    }

    #[test]
    fn takes_the_nearest_rank() {
        assert_eq!(
            percentiles((1..=100).rev().collect()),
            of(50, 95, 99, 51),
            "the mean is 50.5"
        );
        assert_eq!(percentiles((1..=20).collect()), of(10, 19, 20, 11));
        assert_eq!(percentiles(vec![3, 1, 2]), of(2, 3, 3, 2));
        assert_eq!(percentiles(vec![0]), of(1, 1, 1, 1));
    }

    #[test]
    fn a_smaller_batch_is_never_slower() {
        let mut cells = [of(10, 90, 95, 30), of(8, 25, 60, 12), of(12, 26, 40, 13)];
        make_monotone(cells.iter_mut());
        assert_eq!(
            cells,
            [of(8, 25, 40, 12), of(8, 25, 40, 12), of(12, 26, 40, 13)]
        );
    }

    #[test]
    fn a_median_settles_when_its_neighbours_agree() {
        let alike: Vec<u64> = (0..100).map(|i| 1_000 + i % 3).collect();
        assert!(is_settled(&alike, 0.02));
        assert!(!is_settled(&alike[..9], 0.02), "too few samples");
        let spread: Vec<u64> = (0..100).map(|i| 500 + i * 10).collect();
        assert!(!is_settled(&spread, 0.02));
        // One outlier in twenty samples does not move the median.
        let outliers: Vec<u64> = (0..100)
            .map(|i| if i % 20 == 0 { 90_000 } else { 1_000 })
            .collect();
        assert!(is_settled(&outliers, 0.02));
    }
}
