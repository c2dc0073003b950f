//! The profile as dense tables: one array of latencies, by batch, for every range of stages.

use std::cmp::Reverse;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::ids::{KindId, VariantId};
use crate::sort::sort_distinct;

/// Latencies by (kind, variant, from-stage, to-stage, with a head or without), each an array for
/// batches of 1, 2, and so on. Exits follow distinct stages, so one bit is enough for the head.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyTable {
    variants: usize,
    /// By (kind, variant): its start in `ranges` and its number of stages.
    variant_ranges: Vec<(usize, u32)>,
    /// Start and length in `values`.
    ranges: Vec<(u32, u32)>,
    /// Latencies in microseconds, kind by kind.
    values: Vec<u64>,
    /// `values` as profiled, once they are multiplied by a slowdown; empty before.
    profiled: Vec<u64>,
    /// Where each kind's values end.
    kind_ends: Vec<usize>,
    /// By kind, the slowdown that `values` contain; empty: none.
    slowdown: Vec<f64>,
    /// Per (kind, variant), in microseconds.
    loads: Vec<u64>,
}

/// From-stage, to-stage and whether an exit's head runs.
type StageRange = (u32, u32, bool);

/// One measured latency. Sorted by range and batch, and with only the last of equal ones.
#[derive(Clone, Copy)]
struct LatencyPoint {
    kind: u32,
    variant: u32,
    range: StageRange,
    batch: u32,
    latency_us: u64,
}

// === impl LatencyTable ===

impl LatencyTable {
    pub(crate) fn new(catalog: &raw::Catalog) -> Self {
        let variants = catalog.variants.len();
        let mut table = Self {
            variants,
            loads: vec![0; catalog.kinds.len() * variants],
            ..Self::default()
        };
        for row in &catalog.loads {
            let at = row.kind as usize * variants + row.variant as usize;
            if (row.variant as usize) < variants && at < table.loads.len() {
                table.loads[at] = row.latency;
            }
        }
        let points = measured(catalog);
        for kind in 0..catalog.kinds.len() as u32 {
            for (v, variant) in (0u32..).zip(&catalog.variants) {
                let points = equal_range(&points, (kind, v), |point| (point.kind, point.variant));
                table.add_variant(variant, points);
            }
            table.kind_ends.push(table.values.len());
        }
        table
    }

    /// Multiplies the profiled latencies of each kind by its slowdown; without an entry by 1.
    pub(crate) fn follow(&mut self, slowdown: &[f64]) {
        if slowdown == self.slowdown {
            return;
        }
        if self.profiled.is_empty() {
            self.profiled.clone_from(&self.values);
        }
        self.slowdown.clear();
        self.slowdown.extend_from_slice(slowdown);
        let mut start = 0;
        for (kind, &end) in self.kind_ends.iter().enumerate() {
            let factor = slowdown.get(kind).copied().unwrap_or(1.0);
            let profiled = &self.profiled[start..end];
            for (value, &profiled) in self.values[start..end].iter_mut().zip(profiled) {
                // Exact below 2^53 us; the host rounds down too.
                *value = (profiled as f64 * factor) as u64;
            }
            start = end;
        }
    }

    /// Latencies of one range by batch, empty if it was not measured.
    pub(crate) fn of_range(
        &self,
        kind: KindId,
        variant: VariantId,
        from_stage: u32,
        to_stage: u32,
        head: bool,
    ) -> &[u64] {
        let (base, stages) = self.variant_ranges[kind.index() * self.variants + variant.index()];
        if from_stage >= to_stage || to_stage > stages {
            return &[];
        }
        let (start, len) = self.ranges[base + position(stages, (from_stage, to_stage, head))];
        &self.values[start as usize..(start + len) as usize]
    }

    pub(crate) fn load(&self, kind: KindId, variant: VariantId) -> u64 {
        self.loads[kind.index() * self.variants + variant.index()]
    }

    fn add_variant(&mut self, variant: &raw::ModelVariant, measured: &[LatencyPoint]) {
        let (base, stages) = (self.ranges.len(), variant.stages);
        self.variant_ranges.push((base, stages));
        self.ranges
            .resize(base + 2 * (stages * stages) as usize, (0, 0));
        for from in 0..stages {
            // Single stages come first: they are the parts of all sums.
            for head in [false, true] {
                self.add_range(base, variant, measured, (from, from + 1, head));
            }
        }
        for from in 0..stages {
            for to in from + 2..=stages {
                for head in [false, true] {
                    self.add_range(base, variant, measured, (from, to, head));
                }
            }
        }
    }

    fn add_range(
        &mut self,
        base: usize,
        variant: &raw::ModelVariant,
        measured: &[LatencyPoint],
        (from, to, head): StageRange,
    ) {
        let start = self.values.len();
        let points = equal_range(measured, (from, to, head), |point| point.range);
        if !points.is_empty() {
            let batches = 1..=variant.max_batch;
            self.values
                .extend(batches.map_while(|batch| interpolate(points, batch)));
        } else if to > from + 1 {
            // As the host does: split off the last stage, which carries the head.
            let part = |range| self.ranges[base + position(variant.stages, range)];
            let (before, before_len) = part((from, to - 1, false));
            let (last, last_len) = part((to - 1, to, head));
            for i in 0..before_len.min(last_len) {
                let sum = self.values[(before + i) as usize] + self.values[(last + i) as usize];
                self.values.push(sum);
            }
        }
        let len = self.values.len() - start;
        self.ranges[base + position(variant.stages, (from, to, head))] = (start as u32, len as u32);
    }
}

fn position(stages: u32, (from, to, head): StageRange) -> usize {
    2 * (from * stages + to - 1) as usize + usize::from(head)
}

/// The rows as points, without the rows whose exit does not follow their last stage: no dispatch
/// can name those.
fn measured(catalog: &raw::Catalog) -> Vec<LatencyPoint> {
    let follows = |row: &raw::ProfileRow| {
        let exits = catalog
            .variants
            .get(row.variant as usize)
            .map(|variant| &variant.exits);
        exits.is_some_and(|exits| match row.exit {
            None => true,
            Some(exit) => exits
                .get(exit as usize)
                .is_some_and(|e| e.after_stage == row.to_stage),
        })
    };
    let rows = (0u32..)
        .zip(&catalog.profile)
        .filter(|(_, row)| follows(row));
    let mut points: Vec<(u32, LatencyPoint)> = rows
        .map(|(at, row)| {
            let point = LatencyPoint {
                kind: row.kind,
                variant: row.variant,
                range: (row.from_stage, row.to_stage, row.exit.is_some()),
                batch: row.batch,
                latency_us: row.latency,
            };
            (at, point)
        })
        .collect();
    let key = |point: &LatencyPoint| (point.kind, point.variant, point.range, point.batch);
    // The later of two rows for one range and batch comes first and is kept.
    let order = |(at, point): &(u32, LatencyPoint)| (key(point), Reverse(*at));
    sort_distinct(&mut points, |a, b| order(a) < order(b));
    points.dedup_by_key(|(_, point)| key(point));
    points.into_iter().map(|(_, point)| point).collect()
}

/// The points whose key, by which they are sorted, is this one.
fn equal_range<K: Ord>(
    points: &[LatencyPoint],
    key: K,
    of: impl Fn(&LatencyPoint) -> K,
) -> &[LatencyPoint] {
    let start = points.partition_point(|point| of(point) < key);
    let len = points[start..].partition_point(|point| of(point) <= key);
    &points[start..start + len]
}

/// The host's interpolation (`switchyard_core::profile`), to the microsecond: linear between
/// measured batches, rounded up; below the smallest one its latency; none above the largest.
fn interpolate(points: &[LatencyPoint], batch: u32) -> Option<u64> {
    let at = points.partition_point(|point| point.batch < batch);
    let above = points.get(at)?;
    if above.batch == batch || at == 0 {
        return Some(above.latency_us);
    }
    let below = points[at - 1];
    let (low, high) = (below.latency_us, above.latency_us);
    let span = u64::from(above.batch - below.batch);
    let into = u64::from(batch - below.batch);
    Some(if high >= low {
        low + ((high - low) * into).div_ceil(span)
    } else {
        low - (low - high) * into / span
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use switchyard_core::estimate::Slowdown;
    use switchyard_core::time::Micros;

    use crate::ids::{ExitId, VariantId, WorkerId};
    use crate::testing::CatalogBuilder;

    proptest! {
        #[test]
        fn a_followed_latency_is_the_hosts(latency_us in 1u64..10_000_000, part in 512u32..8_192) {
            let slowdown = Slowdown::between(Micros(1_024), Micros(u64::from(part)));
            let mut catalog = CatalogBuilder::new()
                .app("a", &["x"])
                .variant("v", &[0.9])
                .latency_at(1, latency_us)
                .worker_of("one", "slow")
                .worker_of("two", "as-profiled")
                .build();
            let of = |catalog: &crate::Catalog, worker| {
                catalog.latency_us(WorkerId(worker), VariantId(0), ExitId(0), 1).unwrap()
            };
            catalog.follow(Some(&[slowdown.ratio(), 1.0]));
            prop_assert_eq!(of(&catalog, 0), slowdown.of(Micros(latency_us)).0);
            prop_assert_eq!(of(&catalog, 1), latency_us);
            catalog.follow(None);
            prop_assert_eq!(of(&catalog, 0), latency_us);
        }
    }
}
