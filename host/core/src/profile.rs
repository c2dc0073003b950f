//! The profile: measured latencies of batches and loads at one percentile, interpolated between
//! batch sizes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cost::{Cost, CostCurve};
use crate::ids::{AppId, ExitId, KindId, VariantId};
use crate::time::Micros;

/// Latency table of one catalog. A latency is of stages `[from_stage, to_stage)` and then the
/// head of `exit`, if any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "ProfileRows", into = "ProfileRows")]
pub struct Profile {
    /// The percentile of the latencies, 0 to 1.
    percentile: f64,
    /// By ascending batch size.
    latencies: BTreeMap<ProfileKey, Vec<LatencyPoint>>,
    loads: BTreeMap<(KindId, VariantId), Micros>,
    /// Of apps whose requests differ in length.
    costs: BTreeMap<AppId, CostCurve>,
}

/// One measured latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRow {
    /// Kind of worker it was measured on.
    pub kind: KindId,
    /// The variant measured.
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
    /// Energy the batch took, in microjoules, if it was measured.
    pub energy_uj: Option<u64>,
}

/// One measured load time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Kind of worker it was measured on.
    pub kind: KindId,
    /// The variant that was loaded.
    pub variant: VariantId,
    /// From the request for it until the variant is resident.
    pub latency: Micros,
}

/// One series of latencies: everything but the batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ProfileKey {
    kind: KindId,
    variant: VariantId,
    from_stage: u32,
    to_stage: u32,
    exit: Option<ExitId>,
}

/// The latency of one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LatencyPoint {
    batch: u32,
    latency: Micros,
    energy_uj: Option<u64>,
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
struct ProfileRows {
    percentile: f64,
    rows: Vec<ProfileRow>,
    loads: Vec<LoadRow>,
    #[serde(default)]
    costs: BTreeMap<AppId, CostCurve>,
}

// === impl Profile ===

impl Profile {
    /// Builds the table. A later row for the same stages, exit and batch replaces an earlier one.
    pub fn new(
        percentile: f64,
        rows: impl IntoIterator<Item = ProfileRow>,
        loads: impl IntoIterator<Item = LoadRow>,
    ) -> Self {
        let mut latencies: BTreeMap<ProfileKey, Vec<LatencyPoint>> = BTreeMap::new();
        for row in rows {
            let point = LatencyPoint {
                batch: row.batch,
                latency: row.latency,
                energy_uj: row.energy_uj,
            };
            let points = latencies.entry(ProfileKey::of(&row)).or_default();
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
            latencies,
            loads,
            costs: BTreeMap::new(),
        }
    }

    /// With the costs of an app's requests by their length.
    #[must_use]
    pub fn with_costs(mut self, app: AppId, curve: CostCurve) -> Self {
        self.costs.insert(app, curve);
        self
    }

    /// The cost of an app's request of this length; 1 if the profile has no lengths for the app.
    pub fn cost(&self, app: AppId, length: u32) -> Cost {
        let curve = self.costs.get(&app);
        curve.map_or(Cost::ONE, |curve| curve.of(length))
    }

    /// The costs by length of an app's requests, if they differ.
    pub fn costs(&self, app: AppId) -> Option<&CostCurve> {
        self.costs.get(&app)
    }

    /// The percentile of the latencies, 0 to 1.
    pub fn percentile(&self) -> f64 {
        self.percentile
    }

    /// Latency of a batch over stages `[from_stage, to_stage)` and the head of `exit`. Linear
    /// between measured batch sizes, rounded up; below the smallest, the latency of the smallest;
    /// above the largest, none. A stage range that was not measured as a whole is the sum of its
    /// stages.
    pub fn latency(
        &self,
        kind: KindId,
        variant: VariantId,
        from_stage: u32,
        to_stage: u32,
        exit: Option<ExitId>,
        batch: u32,
    ) -> Option<Micros> {
        let key = ProfileKey {
            kind,
            variant,
            from_stage,
            to_stage,
            exit,
        };
        self.sum_of(key, &|points| interpolate(points, batch))
    }

    /// Latency of a batch whose requests cost as much together, by the rules of
    /// [`latency`](Self::latency); beyond the largest measured batch it goes on as before it.
    pub fn latency_of(
        &self,
        kind: KindId,
        variant: VariantId,
        from_stage: u32,
        to_stage: u32,
        exit: Option<ExitId>,
        cost: Cost,
    ) -> Option<Micros> {
        let key = ProfileKey {
            kind,
            variant,
            from_stage,
            to_stage,
            exit,
        };
        self.sum_of(key, &|points| extend(points, cost))
    }

    /// Adds up a stage range that was not measured as a whole.
    fn sum_of(
        &self,
        key: ProfileKey,
        of: &dyn Fn(&[LatencyPoint]) -> Option<Micros>,
    ) -> Option<Micros> {
        if let Some(points) = self.latencies.get(&key) {
            return of(points);
        }
        if key.to_stage <= key.from_stage + 1 {
            return None;
        }
        // Split off the last stage: it carries the exit's head.
        let cut = key.to_stage - 1;
        let head = ProfileKey {
            to_stage: cut,
            exit: None,
            ..key
        };
        let tail = ProfileKey {
            from_stage: cut,
            ..key
        };
        Some(self.sum_of(head, of)? + self.sum_of(tail, of)?)
    }

    /// The cost of a request that takes this time in a batch of one: the number of rows with which
    /// a batch takes as long. Below the smallest batch the latency falls as it rises after it.
    pub fn cost_of_latency(
        &self,
        kind: KindId,
        variant: VariantId,
        to_stage: u32,
        exit: ExitId,
        latency: Micros,
    ) -> Option<Cost> {
        let key = ProfileKey {
            kind,
            variant,
            from_stage: 0,
            to_stage,
            exit: Some(exit),
        };
        let points = self.latencies.get(&key)?;
        let at = points.partition_point(|point| point.latency < latency);
        let [low, high] = match points.as_slice() {
            [] => return None,
            &[only] => {
                let origin = LatencyPoint {
                    batch: 0,
                    latency: Micros::ZERO,
                    energy_uj: None,
                };
                [origin, only]
            }
            several => {
                let first = at.saturating_sub(1).min(several.len() - 2);
                [several[first], several[first + 1]]
            }
        };
        let rise = high.latency.0 as f64 - low.latency.0 as f64;
        let span = f64::from(high.batch - low.batch);
        let into = latency.0 as f64 - low.latency.0 as f64;
        let rows = f64::from(low.batch) + into * span / rise.max(1.0);
        Some(Cost::from_f64(rows))
    }

    /// Time to make a variant resident; zero if it was not measured.
    pub fn load_time(&self, kind: KindId, variant: VariantId) -> Micros {
        self.loads
            .get(&(kind, variant))
            .copied()
            .unwrap_or_default()
    }

    /// The largest batch measured with an exit of a variant on a kind.
    pub fn largest_batch(&self, kind: KindId, variant: VariantId) -> Option<u32> {
        self.latencies
            .iter()
            .filter(|(key, _)| key.kind == kind && key.variant == variant && key.exit.is_some())
            .filter_map(|(_, points)| points.last())
            .map(|point| point.batch)
            .max()
    }

    /// All latencies, ordered by kind, variant, stages, exit, batch.
    pub fn rows(&self) -> impl Iterator<Item = ProfileRow> + '_ {
        self.latencies.iter().flat_map(|(key, points)| {
            points.iter().map(|point| ProfileRow {
                kind: key.kind,
                variant: key.variant,
                from_stage: key.from_stage,
                to_stage: key.to_stage,
                exit: key.exit,
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
}

impl From<ProfileRows> for Profile {
    fn from(rows: ProfileRows) -> Self {
        Self {
            costs: rows.costs,
            ..Self::new(rows.percentile, rows.rows, rows.loads)
        }
    }
}

impl From<Profile> for ProfileRows {
    fn from(profile: Profile) -> Self {
        Self {
            percentile: profile.percentile,
            rows: profile.rows().collect(),
            loads: profile.loads().collect(),
            costs: profile.costs,
        }
    }
}

impl ProfileKey {
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

fn interpolate(points: &[LatencyPoint], batch: u32) -> Option<Micros> {
    let at = points.partition_point(|p| p.batch < batch);
    let above = points.get(at)?;
    if above.batch == batch || at == 0 {
        // The smallest measured batch bounds smaller ones from above.
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

/// The latency of a batch of this cost. Like [`interpolate`] up to the largest measured batch; beyond
/// it along the line through the last two.
fn extend(points: &[LatencyPoint], cost: Cost) -> Option<Micros> {
    let last = points.last()?;
    let (rows, part) = cost.parts();
    if rows < last.batch {
        let low = interpolate(points, rows.max(1))?;
        let high = interpolate(points, rows + 1)?;
        return Some(between(low, high, part));
    }
    let (beyond, from) = match points {
        [.., from, last] => (last.batch - from.batch, from.latency),
        _ => (last.batch, Micros::ZERO),
    };
    let rise = last.latency.0.saturating_sub(from.0);
    let per_row = rise.div_ceil(u64::from(beyond.max(1)));
    let further = u64::from(rows - last.batch);
    let further = per_row.saturating_mul(further) + Cost::share(per_row, part);
    Some(Micros(last.latency.0.saturating_add(further)))
}

/// From `low` `part` 256ths of the way to `high`.
fn between(low: Micros, high: Micros, part: u32) -> Micros {
    match high.0.checked_sub(low.0) {
        Some(rise) => Micros(low.0 + Cost::share(rise, part)),
        None => Micros(low.0 - (low.0 - high.0) * u64::from(part) / 256),
    }
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
    fn costs_are_rows_between_and_beyond_the_measured_batches() {
        let rows = [row(0, 1, Some(0), 1, 100), row(0, 1, Some(0), 4, 400)];
        let profile = Profile::new(0.95, rows, []);
        let (kind, variant, exit) = (KindId(0), VariantId(0), ExitId(0));
        let at = |rows| {
            let cost = Cost::from_f64(rows);
            let latency = profile.latency_of(kind, variant, 0, 1, Some(exit), cost);
            latency.unwrap_or_default().0
        };
        assert_eq!([at(0.25), at(1.0), at(1.5), at(3.25)], [100, 100, 150, 325]);
        assert_eq!([at(4.0), at(4.5), at(10.0)], [400, 450, 1_000]);
        let cost_of = |us| {
            let cost = profile.cost_of_latency(kind, variant, 1, exit, Micros(us));
            cost.unwrap_or(Cost::ZERO).as_f64()
        };
        let costs = [25, 100, 150, 400, 1_000].map(cost_of);
        assert_eq!(costs, [0.25, 1.0, 1.5, 4.0, 10.0]);
        assert_eq!(cost_of(0), Cost::LEAST.as_f64());
    }

    #[test]
    fn round_trips_through_rows() {
        let rows = [row(0, 1, Some(0), 1, 10), row(0, 2, Some(1), 8, 90)];
        let profile = Profile::new(0.95, rows, []);
        assert_eq!(profile.rows().collect::<Vec<_>>(), rows);
    }
}
