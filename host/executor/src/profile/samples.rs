//! From repeated measurements to percentiles.

/// Percentiles of one cell, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p50_us: u64,
    pub(crate) p95_us: u64,
    pub(crate) p99_us: u64,
}

/// Percentiles by nearest rank: the smallest sample that at least the given share of all samples
/// does not exceed.
///
/// Few samples make this the cautious choice: below 20 of them the 95th percentile is the
/// largest, below 100 the 99th is. Samples of no time at all count as one microsecond, so that a
/// plan never believes that work is free.
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
    }
}

/// Lowers each cell to the smallest after it. A smaller batch never takes longer than a larger
/// one, so where it was measured to, something else had the core meanwhile: such noise only ever
/// adds. Interpolation between batches is monotone afterwards.
pub(crate) fn make_monotone<'a>(
    ascending_batches: impl DoubleEndedIterator<Item = &'a mut Percentiles>,
) {
    let mut ceiling: Option<Percentiles> = None;
    for cell in ascending_batches.rev() {
        if let Some(ceiling) = ceiling {
            cell.p50_us = cell.p50_us.min(ceiling.p50_us);
            cell.p95_us = cell.p95_us.min(ceiling.p95_us);
            cell.p99_us = cell.p99_us.min(ceiling.p99_us);
        }
        ceiling = Some(*cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(p50_us: u64, p95_us: u64, p99_us: u64) -> Percentiles {
        Percentiles {
            p50_us,
            p95_us,
            p99_us,
        }
    }

    #[test]
    fn takes_the_nearest_rank() {
        assert_eq!(percentiles((1..=100).rev().collect()), of(50, 95, 99));
        assert_eq!(percentiles((1..=20).collect()), of(10, 19, 20));
        assert_eq!(percentiles(vec![3, 1, 2]), of(2, 3, 3));
        assert_eq!(percentiles(vec![0]), of(1, 1, 1));
    }

    #[test]
    fn a_smaller_batch_is_never_slower() {
        let mut cells = [of(10, 90, 95), of(8, 25, 60), of(12, 26, 40)];
        make_monotone(cells.iter_mut());
        assert_eq!(cells, [of(8, 25, 40), of(8, 25, 40), of(12, 26, 40)]);
    }
}
