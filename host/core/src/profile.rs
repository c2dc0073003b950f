//! How long things take: measured latencies at one percentile, looked up and interpolated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, CatalogError};
use crate::ids::{ExitId, KindId, VariantId};
use crate::time::Micros;

/// Latency table of one catalog. Rows name a run: stages `[from_stage, to_stage)` and then
/// the head of `exit`, if any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Rows", into = "Rows")]
pub struct Profile {
    /// Which percentile the latencies are, 0 to 1.
    percentile: f64,
    /// Ascending batch sizes per run.
    runs: BTreeMap<Run, Vec<Point>>,
    loads: BTreeMap<(KindId, VariantId), Micros>,
}

/// One measured latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRow {
    /// Kind of worker it was measured on.
    pub kind: KindId,
    /// The variant that ran.
    pub variant: VariantId,
    /// First stage run.
    pub from_stage: u32,
    /// One past the last stage run.
    pub to_stage: u32,
    /// The exit whose head ran afterwards.
    pub exit: Option<ExitId>,
    /// Requests in the batch.
    pub batch: u32,
    /// Time the batch took.
    pub latency: Micros,
    /// Energy the batch took, in microjoules, where it is known.
    pub energy_uj: Option<u64>,
}

/// One measured load time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Kind of worker it was measured on.
    pub kind: KindId,
    /// The variant that was loaded.
    pub variant: VariantId,
    /// From asking for it to being resident.
    pub latency: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    kind: KindId,
    variant: VariantId,
    from_stage: u32,
    to_stage: u32,
    exit: Option<ExitId>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    batch: u32,
    latency: Micros,
    energy_uj: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Rows {
    percentile: f64,
    rows: Vec<ProfileRow>,
    loads: Vec<LoadRow>,
}

// === impl Profile ===

impl Profile {
    /// Builds the table. A later row for the same run and batch replaces an earlier one.
    pub fn new(
        percentile: f64,
        rows: impl IntoIterator<Item = ProfileRow>,
        loads: impl IntoIterator<Item = LoadRow>,
    ) -> Self {
        let mut runs: BTreeMap<Run, Vec<Point>> = BTreeMap::new();
        for row in rows {
            let point = Point {
                batch: row.batch,
                latency: row.latency,
                energy_uj: row.energy_uj,
            };
            let points = runs.entry(Run::of(&row)).or_default();
            match points.binary_search_by_key(&row.batch, |p| p.batch) {
                Ok(at) => points[at] = point,
                Err(at) => points.insert(at, point),
            }
        }
        let loads = loads
            .into_iter()
            .map(|row| ((row.kind, row.variant), row.latency))
            .collect();
        Self {
            percentile,
            runs,
            loads,
        }
    }

    /// Which percentile the latencies are, 0 to 1.
    pub fn percentile(&self) -> f64 {
        self.percentile
    }

    /// Latency of a run. Between measured batch sizes it is interpolated linearly; above the
    /// largest there is none. A stage range that was not measured as a whole is the sum of
    /// its stages.
    pub fn latency(
        &self,
        kind: KindId,
        variant: VariantId,
        from_stage: u32,
        to_stage: u32,
        exit: Option<ExitId>,
        batch: u32,
    ) -> Option<Micros> {
        let run = Run {
            kind,
            variant,
            from_stage,
            to_stage,
            exit,
        };
        if let Some(points) = self.runs.get(&run) {
            return interpolate(points, batch);
        }
        if to_stage <= from_stage + 1 {
            return None;
        }
        // Split off the last stage, which is the one that carries the exit's head.
        let head = self.latency(kind, variant, from_stage, to_stage - 1, None, batch)?;
        let tail = self.latency(kind, variant, to_stage - 1, to_stage, exit, batch)?;
        Some(head + tail)
    }

    /// Time to make a variant resident; zero where it was not measured.
    pub fn load_time(&self, kind: KindId, variant: VariantId) -> Micros {
        self.loads
            .get(&(kind, variant))
            .copied()
            .unwrap_or_default()
    }

    /// The largest batch measured for whole runs of a variant on a kind.
    pub fn largest_batch(&self, kind: KindId, variant: VariantId) -> Option<u32> {
        self.runs
            .iter()
            .filter(|(run, _)| run.kind == kind && run.variant == variant && run.exit.is_some())
            .filter_map(|(_, points)| points.last())
            .map(|point| point.batch)
            .max()
    }

    /// All latencies, ordered by kind, variant, stages, exit, batch.
    pub fn rows(&self) -> impl Iterator<Item = ProfileRow> + '_ {
        self.runs.iter().flat_map(|(run, points)| {
            points.iter().map(|point| ProfileRow {
                kind: run.kind,
                variant: run.variant,
                from_stage: run.from_stage,
                to_stage: run.to_stage,
                exit: run.exit,
                batch: point.batch,
                latency: point.latency,
                energy_uj: point.energy_uj,
            })
        })
    }

    /// All load times, ordered by kind and variant.
    pub fn loads(&self) -> impl Iterator<Item = LoadRow> + '_ {
        self.loads
            .iter()
            .map(|(&(kind, variant), &latency)| LoadRow {
                kind,
                variant,
                latency,
            })
    }

    /// Every worker must know how long every whole run of every variant takes.
    pub(crate) fn validate(&self, catalog: &Catalog) -> Result<(), CatalogError> {
        for worker in &catalog.workers {
            for (v, variant) in catalog.variants.iter().enumerate() {
                for (e, exit) in variant.exits.iter().enumerate() {
                    let (variant_id, exit_id) = (VariantId(v as u32), Some(ExitId(e as u32)));
                    let known = |batch| {
                        self.latency(worker.kind, variant_id, 0, exit.after_stage, exit_id, batch)
                    };
                    let needed = [1, variant.max_batch];
                    if let Some(batch) = needed.into_iter().find(|&b| known(b).is_none()) {
                        let app = catalog.app(variant.app).map_or("", |app| &app.name);
                        return Err(CatalogError::new(
                            &format!(
                                "profile[kind {}, variant {app}/{}, exit {}, batch {batch}]",
                                catalog.kinds[worker.kind.index()],
                                variant.name,
                                exit.name,
                            ),
                            "not measured",
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

impl From<Rows> for Profile {
    fn from(rows: Rows) -> Self {
        Self::new(rows.percentile, rows.rows, rows.loads)
    }
}

impl From<Profile> for Rows {
    fn from(profile: Profile) -> Self {
        Self {
            percentile: profile.percentile,
            rows: profile.rows().collect(),
            loads: profile.loads().collect(),
        }
    }
}

impl Run {
    fn of(row: &ProfileRow) -> Self {
        Self {
            kind: row.kind,
            variant: row.variant,
            from_stage: row.from_stage,
            to_stage: row.to_stage,
            exit: row.exit,
        }
    }
}

fn interpolate(points: &[Point], batch: u32) -> Option<Micros> {
    let at = points.partition_point(|p| p.batch < batch);
    let above = points.get(at)?;
    if above.batch == batch || at == 0 {
        // Below the smallest measured batch its latency is an upper bound.
        return Some(above.latency);
    }
    let below = points[at - 1];
    let span = u64::from(above.batch - below.batch);
    let into = u64::from(batch - below.batch);
    let (low, high) = (below.latency.0, above.latency.0);
    // Rounded up: a deadline met by interpolation must not be missed by rounding.
    let latency = if high >= low {
        low + ((high - low) * into).div_ceil(span)
    } else {
        low - (low - high) * into / span
    };
    Some(Micros(latency))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(from: u32, to: u32, exit: Option<u32>, batch: u32, us: u64) -> ProfileRow {
        ProfileRow {
            kind: KindId(0),
            variant: VariantId(0),
            from_stage: from,
            to_stage: to,
            exit: exit.map(ExitId),
            batch,
            latency: Micros(us),
            energy_uj: None,
        }
    }

    #[test]
    fn interpolates_between_batches_and_refuses_above() {
        let profile = Profile::new(
            0.95,
            [row(0, 1, Some(0), 4, 400), row(0, 1, Some(0), 1, 101)],
            [],
        );
        let at = |batch| profile.latency(KindId(0), VariantId(0), 0, 1, Some(ExitId(0)), batch);
        assert_eq!(at(1), Some(Micros(101)));
        assert_eq!(at(2), Some(Micros(201)), "rounded up");
        assert_eq!(at(4), Some(Micros(400)));
        assert_eq!(at(5), None);
    }

    #[test]
    fn sums_stages_when_the_range_was_not_measured() {
        let profile = Profile::new(
            0.95,
            [
                row(0, 1, None, 1, 10),
                row(1, 2, None, 1, 20),
                row(2, 3, Some(0), 1, 30),
            ],
            [],
        );
        let whole = profile.latency(KindId(0), VariantId(0), 0, 3, Some(ExitId(0)), 1);
        assert_eq!(whole, Some(Micros(60)));
        let without_head = profile.latency(KindId(0), VariantId(0), 0, 3, None, 1);
        assert_eq!(
            without_head, None,
            "the last stage was only measured with its head"
        );
    }

    #[test]
    fn round_trips_through_rows() {
        let rows = [row(0, 1, Some(0), 1, 10), row(0, 2, Some(1), 8, 90)];
        let profile = Profile::new(0.95, rows, []);
        assert_eq!(profile.rows().collect::<Vec<_>>(), rows);
    }
}
