//! The rows that every layout is read into: one per variant and batch.

use std::path::Path;

use super::error::ImportError;
use crate::samples::{Percentiles, make_monotone};

/// Rows in the order of the layout, and notes to the reader of the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ImportTable {
    pub(super) rows: Vec<ImportRow>,
    pub(super) notes: Vec<String>,
    /// Batches that were not measured are filled in, up to the largest of any variant.
    pub(super) fills: bool,
}

/// One batch size of one variant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImportRow {
    pub(super) app: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) variant: String,
    pub(super) batch: u32,
    /// Number of measurements; 0: filled in.
    pub(super) samples: u32,
    pub(super) latency: Percentiles,
    pub(super) mean_us: Option<u64>,
    /// 0 to 1.
    pub(super) accuracy: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) load_us: Option<u64>,
    pub(super) energy_uj: Option<u64>,
}

/// Latencies in microseconds, as a layout gives them: any of the three may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct GivenPercentiles {
    pub(super) p50_us: Option<f64>,
    pub(super) p95_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
}

// === impl GivenPercentiles ===

impl GivenPercentiles {
    /// All three. A missing one is the next higher given one, otherwise the next lower. Each is at
    /// least 1 us and not below a lower percentile. `None` if none is given.
    pub(super) fn complete(self) -> Option<Percentiles> {
        let p50 = self.p50_us.or(self.p95_us).or(self.p99_us)?;
        let p95 = self.p95_us.or(self.p99_us).unwrap_or(p50).max(p50);
        let p99 = self.p99_us.unwrap_or(p95).max(p95);
        let whole = |us: f64| (us.round() as u64).max(1);
        Some(Percentiles {
            p50_us: whole(p50),
            p95_us: whole(p95),
            p99_us: whole(p99),
            mean_us: whole(p50),
        })
    }
}

/// Largest batch of a layout whose gaps are filled: every size up to the largest becomes a row.
pub(super) const FILLED_MAX: u32 = 4_096;

// === impl ImportTable ===

impl ImportTable {
    /// Only these variants; all if none is named.
    pub(super) fn only(mut self, path: &Path, wanted: &[String]) -> Result<Self, ImportError> {
        for name in wanted {
            if !self.rows.iter().any(|row| row.variant == *name) {
                let mut known: Vec<&str> = self.rows.iter().map(|row| &*row.variant).collect();
                known.dedup();
                let reason = format!("no variant `{name}`; there are {}", known.join(", "));
                return Err(ImportError::layout(path, reason));
            }
        }
        if !wanted.is_empty() {
            self.rows.retain(|row| wanted.contains(&row.variant));
        }
        Ok(self)
    }

    /// Sorted, with gaps filled if the layout demands it, and monotone in the batch size.
    pub(super) fn finished(self) -> Self {
        let Self {
            mut rows,
            notes,
            fills,
        } = self;
        let order = |row: &ImportRow| (row.kind.clone(), row.app.clone(), row.variant.clone());
        rows.sort_by_key(|row| (order(row), row.batch));
        let largest = rows.iter().map(|row| row.batch).max().unwrap_or_default();
        let mut finished = Vec::with_capacity(rows.len());
        for batches in rows.chunk_by(|a, b| order(a) == order(b)) {
            let mut batches = if fills {
                filled(batches, largest)
            } else {
                batches.to_vec()
            };
            make_monotone(batches.iter_mut().map(|row| &mut row.latency));
            finished.extend(batches);
        }
        Self {
            rows: finished,
            notes,
            fills: false,
        }
    }
}

/// Batches 1 to `largest` of one variant. Missing ones come from a straight line through the
/// others, percentile by percentile, as in the RAMSIS artifact. One batch alone makes no line.
fn filled(batches: &[ImportRow], largest: u32) -> Vec<ImportRow> {
    let lines = [
        line(batches, |latency| latency.p50_us),
        line(batches, |latency| latency.p95_us),
        line(batches, |latency| latency.p99_us),
    ];
    let [Some(p50), Some(p95), Some(p99)] = lines else {
        return batches.to_vec();
    };
    let at = |(slope, start): (f64, f64), batch: u32| Some(slope.mul_add(f64::from(batch), start));
    let row = |batch: u32| match batches.iter().find(|row| row.batch == batch) {
        Some(row) => row.clone(),
        None => {
            let given = GivenPercentiles {
                p50_us: at(p50, batch),
                p95_us: at(p95, batch),
                p99_us: at(p99, batch),
            };
            ImportRow {
                batch,
                samples: 0,
                latency: given.complete().unwrap_or_default(),
                mean_us: None,
                energy_uj: None,
                ..batches[0].clone()
            }
        }
    };
    (1..=largest).map(row).collect()
}

/// Slope and start of the least-squares line over batch sizes.
fn line(batches: &[ImportRow], of: impl Fn(&Percentiles) -> u64) -> Option<(f64, f64)> {
    let points = batches
        .iter()
        .map(|row| (f64::from(row.batch), of(&row.latency) as f64));
    let n = batches.len() as f64;
    let (x, y) = points
        .clone()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / n, y / n);
    let (above, below) = points.fold((0.0, 0.0), |(above, below), point| {
        let dx = point.0 - x;
        (above + dx * (point.1 - y), below + dx * dx)
    });
    (below > 0.0).then(|| (above / below, y - above / below * x))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row(variant: &str, batch: u32, us: u64) -> ImportRow {
        let given = GivenPercentiles {
            p95_us: Some(us as f64),
            ..GivenPercentiles::default()
        };
        ImportRow {
            app: None,
            kind: None,
            variant: variant.to_owned(),
            batch,
            samples: 7,
            latency: given.complete().unwrap(),
            mean_us: None,
            accuracy: Some(0.5),
            memory_bytes: None,
            load_us: None,
            energy_uj: None,
        }
    }

    #[test]
    fn a_missing_percentile_is_the_next_higher_one() {
        let given = GivenPercentiles {
            p50_us: Some(10.0),
            p99_us: Some(30.4),
            ..GivenPercentiles::default()
        };
        let all = given.complete().unwrap();
        assert_eq!((all.p50_us, all.p95_us, all.p99_us), (10, 30, 30));
        let low = GivenPercentiles {
            p95_us: Some(20.0),
            ..GivenPercentiles::default()
        };
        let all = low.complete().unwrap();
        assert_eq!((all.p50_us, all.p95_us, all.p99_us), (20, 20, 20));
        assert_eq!(GivenPercentiles::default().complete(), None);
    }

    #[test]
    fn gaps_are_on_the_line_through_the_measurements() {
        // 100 us and 50 us per request; batch 4 was measured above the line.
        let rows = vec![
            row("a", 1, 150),
            row("a", 3, 250),
            row("b", 1, 10),
            row("b", 5, 50),
        ];
        let table = ImportTable {
            rows,
            notes: Vec::new(),
            fills: true,
        };
        let finished = table.finished().rows;
        let a: Vec<_> = finished.iter().filter(|row| row.variant == "a").collect();
        let found: Vec<_> = a
            .iter()
            .map(|row| (row.batch, row.latency.p95_us, row.samples))
            .collect();
        assert_eq!(
            found,
            [
                (1, 150, 7),
                (2, 200, 0),
                (3, 250, 7),
                (4, 300, 0),
                (5, 350, 0)
            ]
        );
        let b = finished.iter().filter(|row| row.variant == "b").count();
        assert_eq!(b, 5);
    }

    #[test]
    fn one_batch_makes_no_line_and_smaller_batches_are_never_slower() {
        let table = ImportTable {
            rows: vec![row("a", 2, 70), row("a", 1, 90), row("b", 4, 10)],
            notes: Vec::new(),
            fills: false,
        };
        let finished = table.clone().finished().rows;
        let found: Vec<_> = finished
            .iter()
            .map(|row| (row.batch, row.latency.p95_us))
            .collect();
        assert_eq!(found, [(1, 70), (2, 70), (4, 10)]);
        let filling = ImportTable {
            fills: true,
            ..table
        };
        let b: Vec<_> = filling
            .finished()
            .rows
            .into_iter()
            .filter(|row| row.variant == "b")
            .collect();
        assert_eq!(b.len(), 1);
    }
}
