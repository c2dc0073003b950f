//! An app's variants as choices on one worker, each run to its last exit, best quality first.
//!
//! For policies that choose one variant per batch: "the most accurate one that is in time". Where an
//! app does not classify, its profiled quality stands for the accuracy.

use crate::catalog::Catalog;
use crate::ids::{AppId, VariantId, WorkerId};
use crate::sort::sort_short;

/// The variants that can answer an app's requests on a worker, most accurate first, among equally
/// accurate ones the one that is faster for a single request. Workers of one kind and memory have
/// the same ladder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    rungs: Vec<Rung>,
    batch_max: usize,
}

/// One variant, run to its last exit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// The variant.
    pub variant: VariantId,
    /// Its profiled quality, 0 to 1: the accuracy where the app classifies.
    pub quality: f64,
    /// Of batches of 1, 2, and so on, in microseconds; never empty.
    latencies_us: Box<[u64]>,
}

// === impl Ladder ===

impl Ladder {
    /// The variants of an app that a worker can run.
    pub fn new(catalog: &Catalog, worker: WorkerId, app: AppId) -> Self {
        let able = catalog.variants_of(app);
        let able = able.filter(|variant| catalog.can_run(worker, variant.id));
        let mut rungs: Vec<Rung> = able
            .map(|variant| Rung {
                variant: variant.id,
                quality: variant.quality(),
                latencies_us: catalog
                    .latencies_us(worker, variant.id, variant.last_exit())
                    .into(),
            })
            .collect();
        sort_short(&mut rungs, |a, b| {
            let order = b.quality.total_cmp(&a.quality);
            order
                .then(a.latencies_us[0].cmp(&b.latencies_us[0]))
                .is_lt()
        });
        let batch_max = rungs.iter().map(Rung::batch_max).max().unwrap_or(0);
        Self { rungs, batch_max }
    }

    /// All rungs, most accurate first.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The rung of a variant, if the worker can run it.
    pub fn rung(&self, variant: VariantId) -> Option<&Rung> {
        self.rungs.iter().find(|rung| rung.variant == variant)
    }

    /// The largest batch that any rung takes; 0 without rungs.
    pub fn batch_max(&self) -> usize {
        self.batch_max
    }

    /// The most accurate rung that answers a batch within a time.
    pub fn most_accurate(&self, batch: usize, within_us: i64) -> Option<&Rung> {
        let is_in_time = |rung: &&Rung| rung.is_within(batch, within_us);
        self.rungs.iter().find(is_in_time)
    }

    /// The fastest rung for a batch, among those that take it.
    pub fn fastest(&self, batch: usize) -> Option<&Rung> {
        let able = self
            .rungs
            .iter()
            .filter_map(|rung| Some((rung.latency_us(batch)?, rung)));
        able.min_by_key(|(latency_us, _)| *latency_us)
            .map(|(_, rung)| rung)
    }

    /// The choice of MDInference and ALERT (RAMSIS section 8): the largest batch that any variant
    /// answers before the earliest deadline, with the most accurate variant that does. If that
    /// deadline is lost, the largest batch that any variant takes, with the fastest one. None
    /// without waiting requests or rungs.
    pub fn greedy(&self, waiting: usize, slack_us: i64) -> Option<(&Rung, usize)> {
        let most = waiting.min(self.batch_max);
        let in_time = (1..=most).rev().find_map(|batch| {
            let rung = self.most_accurate(batch, slack_us)?;
            Some((rung, batch))
        });
        in_time.or_else(|| Some((self.fastest(most)?, most)))
    }
}

// === impl Rung ===

impl Rung {
    /// The largest batch that was measured and may be dispatched.
    pub fn batch_max(&self) -> usize {
        self.latencies_us.len()
    }

    /// Latency of a batch in microseconds; none when it is empty or too large.
    pub fn latency_us(&self, batch: usize) -> Option<u64> {
        self.latencies_us.get(batch.checked_sub(1)?).copied()
    }

    /// Whether a batch is answered within a time.
    pub fn is_within(&self, batch: usize, within_us: i64) -> bool {
        let latency_us = self.latency_us(batch);
        latency_us.is_some_and(|us| i64::try_from(us).is_ok_and(|us| us <= within_us))
    }

    /// The largest batch that is answered within a time, 0 when not even one request is.
    pub fn largest_within(&self, within_us: u64) -> usize {
        let is_within = |&&us: &&u64| us <= within_us;
        // A measured profile may dip: the last batch within the time counts.
        let outside = self
            .latencies_us
            .iter()
            .rev()
            .take_while(|us| !is_within(us));
        self.batch_max() - outside.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CatalogBuilder;

    /// Latencies of 1, 2, 3: `small` 10, 15, 20; `large` 30, 50, 70; `odd` 40, 45 and no more.
    fn ladder() -> Ladder {
        let catalog = CatalogBuilder::new()
            .app("a", &["x", "y"])
            .variant("small", &[0.7, 0.7])
            .max_batch(3)
            .latency(5, 5)
            .variant("large", &[0.9, 0.9])
            .max_batch(3)
            .latency(10, 20)
            .variant("odd", &[0.8, 0.8])
            .max_batch(2)
            .latency(35, 5)
            .variant("huge", &[0.99, 0.99])
            .latency(1, 1)
            .memory_bytes(2_000_000)
            .worker("w")
            .worker_memory_bytes(1_000_000)
            .build();
        Ladder::new(&catalog, WorkerId(0), AppId(0))
    }

    fn variant(rung: Option<&Rung>) -> Option<u32> {
        rung.map(|rung| rung.variant.0)
    }

    #[test]
    fn the_most_accurate_come_first_and_variants_that_do_not_fit_are_left_out() {
        let ladder = ladder();
        let variants: Vec<u32> = ladder.rungs().iter().map(|rung| rung.variant.0).collect();
        assert_eq!(variants, [1, 2, 0]);
        assert_eq!(ladder.batch_max(), 3);
        assert_eq!(ladder.rung(VariantId(2)).unwrap().batch_max(), 2);
        assert_eq!(ladder.rung(VariantId(3)), None);
    }

    #[test]
    fn the_most_accurate_in_time_and_the_fastest() {
        let ladder = ladder();
        assert_eq!(variant(ladder.most_accurate(1, 40)), Some(1));
        assert_eq!(variant(ladder.most_accurate(2, 49)), Some(2));
        assert_eq!(variant(ladder.most_accurate(3, 45)), Some(0));
        assert_eq!(variant(ladder.most_accurate(1, 9)), None);
        assert_eq!(variant(ladder.most_accurate(0, 99)), None);
        assert_eq!(variant(ladder.fastest(2)), Some(0));
        assert_eq!(variant(ladder.fastest(4)), None);
        let large = ladder.rung(VariantId(1)).unwrap();
        let within = [29, 30, 69, 70, 1_000].map(|us| large.largest_within(us));
        assert_eq!(within, [0, 1, 2, 3, 3]);
    }

    #[test]
    fn greedy_takes_the_largest_batch_in_time() {
        let ladder = ladder();
        let greedy = |waiting, slack_us| {
            let found = ladder.greedy(waiting, slack_us);
            found.map(|(rung, batch)| (rung.variant.0, batch))
        };
        assert_eq!(greedy(1, 100), Some((1, 1)));
        assert_eq!(greedy(9, 100), Some((1, 3)));
        assert_eq!(greedy(2, 46), Some((2, 2)));
        // Three would be late even with the fastest.
        assert_eq!(greedy(3, 19), Some((0, 2)));
        assert_eq!(greedy(3, 9), Some((0, 3)), "lost anyway");
        assert_eq!(greedy(0, 100), None);
    }
}
