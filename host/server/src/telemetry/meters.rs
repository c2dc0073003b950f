//! The values behind the metrics. Writing one is one or two atomic operations: no lock, no lookup.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts up. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Counter(pub(super) Arc<AtomicU64>);

/// A counter that follows a count of another part of the program, which begins at 0.
#[derive(Debug)]
pub(super) struct CountFollower {
    counter: Counter,
    /// The count that was followed last.
    seen: u64,
}

/// Counts microseconds; shown in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecondsCounter(pub(super) Arc<AtomicU64>);

/// The last value that was set, as the bits of an `f64`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge(pub(super) Arc<AtomicU64>);

/// Counts values by bucket.
#[derive(Clone, Debug)]
pub(crate) struct Histogram(pub(super) Arc<Buckets>);

/// The buckets of a histogram.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Upper bounds, inclusive, from low to high.
    bounds: &'static [f64],
    /// One count per bound, and one of values above the last bound.
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
}

// === impl Counter ===

impl Counter {
    pub(crate) fn increment(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    /// Raises the count to one that was counted elsewhere.
    pub(crate) fn raise_to(&self, count: u64) {
        self.0.fetch_max(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl CountFollower ===

impl CountFollower {
    /// Adds to the value of the counter, which may be that of an earlier pool.
    pub(super) fn new(counter: Counter) -> Self {
        Self { counter, seen: 0 }
    }

    /// Adds the increase of the count since the last call.
    pub(super) fn follow(&mut self, count: u64) {
        self.counter.increment(count.saturating_sub(self.seen));
        self.seen = self.seen.max(count);
    }
}

// === impl SecondsCounter ===

impl SecondsCounter {
    pub(crate) fn add_us(&self, us: u64) {
        self.0.fetch_add(us, Ordering::Relaxed);
    }

    pub(super) fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e6
    }
}

// === impl Gauge ===

impl Gauge {
    pub(crate) fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

// === impl Histogram ===

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Buckets {
            bounds,
            counts,
            sum: AtomicU64::new(0),
        }))
    }

    /// A NaN counts as above the last bound.
    pub(crate) fn record(&self, value: f64) {
        let Buckets {
            bounds,
            counts,
            sum,
        } = &*self.0;
        let at = bounds.iter().position(|bound| value <= *bound);
        counts[at.unwrap_or(bounds.len())].fetch_add(1, Ordering::Relaxed);
        let mut before = sum.load(Ordering::Relaxed);
        loop {
            let after = (f64::from_bits(before) + value).to_bits();
            match sum.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }
}

// === impl Buckets ===

impl Buckets {
    /// Each bound with the number of values up to it; the number of all values; their sum.
    pub(super) fn read(&self) -> (Vec<(f64, u64)>, u64, f64) {
        let mut so_far = 0;
        let mut up_to = Vec::with_capacity(self.bounds.len());
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            so_far += count.load(Ordering::Relaxed);
            up_to.push((*bound, so_far));
        }
        let above = self.counts.last();
        let all = so_far + above.map_or(0, |count| count.load(Ordering::Relaxed));
        let sum = f64::from_bits(self.sum.load(Ordering::Relaxed));
        (up_to, all, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_in_its_bucket() {
        let histogram = Histogram::new(&[1.0, 2.0, 4.0]);
        for value in [0.5, 1.0, 1.5, 4.0, 5.0] {
            histogram.record(value);
        }
        let (up_to, all, sum) = histogram.0.read();
        assert_eq!(up_to, [(1.0, 2), (2.0, 3), (4.0, 4)]);
        assert_eq!((all, sum), (5, 12.0));
    }

    #[test]
    fn threads_lose_no_value() {
        let histogram = Histogram::new(&[0.5]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| histogram.record(1.0)));
            }
        });
        let (up_to, all, sum) = histogram.0.read();
        assert_eq!((up_to[0].1, all, sum), (0, 40_000, 40_000.0));
    }

    #[test]
    fn a_count_from_elsewhere_never_falls() {
        let counter = Counter::default();
        counter.raise_to(7);
        counter.raise_to(3);
        assert_eq!(counter.get(), 7);
    }

    #[test]
    fn a_counter_follows_one_count_after_another() {
        let counter = Counter::default();
        let mut first = CountFollower::new(counter.clone());
        for count in [0, 5, 5, 4, 7] {
            first.follow(count);
        }
        assert_eq!(counter.get(), 7);
        let mut second = CountFollower::new(counter.clone());
        second.follow(2);
        first.follow(8);
        assert_eq!(counter.get(), 10);
    }
}
