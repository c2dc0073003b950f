//! The rates that a catalog allows: the batch at which an exit answers most requests per second, and
//! the least time that an app's request needs.

use crate::catalog::{Catalog, Variant, WorkerSpec};
use crate::cost::Cost;
use crate::estimate::BatchSeries;
use crate::ids::{AppId, ExitId, KindId, VariantId};
use crate::time::Micros;

/// Largest batch that is looked at in steps of one; larger ones in powers of two.
const STEPS_MAX: u32 = 64;

/// The efficient batch of an exit: the largest rate of requests among the batches that take at
/// most half the app's SLO, so that a request may wait for the batch before its own (Nexus, SOSP
/// 2019, section 4.1). If none does, a batch of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EfficientBatch {
    pub(crate) kind: KindId,
    pub(crate) size: u32,
    pub(crate) latency: Micros,
}

/// Efficient batches by kind and exit, and bounds by app.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    /// By kind, then by exit of all variants, one after the other.
    exits: Vec<Option<EfficientBatch>>,
    /// Position of each variant's first exit among all exits, and at the end the number of exits.
    first_exit: Vec<usize>,
    apps: Vec<AppCapacity>,
    /// By kind: the bounds of its workers together; none without workers.
    kinds: Vec<Option<WorkerBounds>>,
}

/// The variants and exits that a worker runs, or any of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerBounds {
    memory_bytes: u64,
    /// It answers at exits before the last one.
    exits: bool,
}

/// The best that the catalog's workers can do for an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppCapacity {
    /// Least latency of a batch of one, and the kind of worker that has it.
    pub(crate) fastest: Option<(Micros, KindId)>,
    /// The batch with the largest rate among all exits.
    pub(crate) best: BestBatch,
    /// Memory of the smallest variant.
    pub(crate) least_memory_bytes: u64,
}

/// An exit and its efficient batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BestBatch {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    pub(crate) batch: EfficientBatch,
}

// === impl WorkerBounds ===

impl WorkerBounds {
    pub(crate) fn of(spec: &WorkerSpec) -> Self {
        Self {
            memory_bytes: spec.memory_bytes,
            exits: spec.can.exits,
        }
    }

    /// The larger memory, and all exits if either worker has them.
    fn or(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            exits: self.exits || other.exits,
        }
    }

    /// The exits of an app's variants within these bounds.
    fn exits_of(self, catalog: &Catalog, app: AppId) -> impl Iterator<Item = (VariantId, ExitId)> {
        let fitting = catalog.variants_of(app);
        let fitting = fitting.filter(move |(_, variant)| variant.memory_bytes <= self.memory_bytes);
        fitting.flat_map(move |(id, variant)| {
            let last = variant.last_exit();
            let first = if self.exits { 0 } else { last.0 };
            (first..=last.0).map(move |exit| (id, ExitId(exit)))
        })
    }
}

// === impl EfficientBatch ===

impl EfficientBatch {
    /// Whether it answers more requests per second than `other`.
    pub(crate) fn is_better_than(self, other: Self) -> bool {
        let per_other = u128::from(self.size) * u128::from(other.latency.0);
        let per_self = u128::from(other.size) * u128::from(self.latency.0);
        other.size == 0 || per_other > per_self
    }
}

// === impl Capacity ===

impl Capacity {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        let mut made = Self::default();
        made.first_exit.push(0);
        for variant in &catalog.variants {
            let before = made.first_exit.last().copied().unwrap_or_default();
            made.first_exit.push(before + variant.exits.len());
        }
        made.kinds = vec![None; catalog.kinds.len()];
        for worker in &catalog.workers {
            if let Some(kind) = made.kinds.get_mut(worker.kind.index()) {
                let own = WorkerBounds::of(worker);
                *kind = Some(kind.map_or(own, |others| others.or(own)));
            }
        }
        for kind in (0..catalog.kinds.len() as u32).map(KindId) {
            for (v, variant) in (0..).map(VariantId).zip(&catalog.variants) {
                for e in (0..variant.exits.len() as u32).map(ExitId) {
                    made.exits.push(efficient(catalog, kind, (v, variant), e));
                }
            }
        }
        for app in catalog.app_ids() {
            let found = made.look_at_app(catalog, app);
            made.apps.push(found);
        }
        made
    }

    /// The efficient batch of an exit on a kind of worker; none if it was not measured.
    pub(crate) fn efficient(
        &self,
        kind: KindId,
        variant: VariantId,
        exit: ExitId,
    ) -> Option<EfficientBatch> {
        let exits = self.first_exit.last()?;
        let at = kind.index() * exits + self.first_exit.get(variant.index())? + exit.index();
        *self.exits.get(at)?
    }

    /// The largest memory of all workers.
    pub(crate) fn memory_max(&self) -> u64 {
        let memories = self.kinds.iter().flatten().map(|kind| kind.memory_bytes);
        memories.max().unwrap_or_default()
    }

    /// The bounds of the workers of a kind together; none without workers.
    fn bounds_of(&self, kind: KindId) -> Option<WorkerBounds> {
        *self.kinds.get(kind.index())?
    }

    pub(crate) fn app(&self, app: AppId) -> AppCapacity {
        self.apps.get(app.index()).copied().unwrap_or_default()
    }

    /// The largest rate among the exits of an app that a worker of this kind with these bounds runs.
    pub(crate) fn best_on(
        &self,
        catalog: &Catalog,
        app: AppId,
        kind: KindId,
        bounds: WorkerBounds,
    ) -> Option<BestBatch> {
        let mut best: Option<BestBatch> = None;
        for (variant, exit) in bounds.exits_of(catalog, app) {
            if let Some(batch) = self.efficient(kind, variant, exit)
                && best.is_none_or(|best| batch.is_better_than(best.batch))
            {
                best = Some(BestBatch {
                    variant,
                    exit,
                    batch,
                });
            }
        }
        best
    }

    /// Least latency of a batch of one request that costs this much, and its series.
    pub(crate) fn fastest_of(
        &self,
        catalog: &Catalog,
        app: AppId,
        cost: Cost,
    ) -> Option<(Micros, BatchSeries)> {
        let (_, at_one) = self.app(app).fastest?;
        let kinds = (0..catalog.kinds.len() as u32).map(KindId);
        let latencies = kinds.filter_map(|kind| {
            let exits = self.bounds_of(kind)?.exits_of(catalog, app);
            let least = exits.filter_map(|exit| {
                let series = BatchSeries::to_exit(catalog, kind, exit, cost)?;
                Some((series.latency(catalog, cost)?, series))
            });
            let (least, series) = least.min()?;
            Some((least, kind != at_one, series))
        });
        latencies.min().map(|(least, _, series)| (least, series))
    }

    fn look_at_app(&self, catalog: &Catalog, app: AppId) -> AppCapacity {
        let memories = catalog.variants_of(app).map(|(_, v)| v.memory_bytes);
        let mut found = AppCapacity {
            least_memory_bytes: memories.min().unwrap_or_default(),
            ..AppCapacity::default()
        };
        for kind in (0..catalog.kinds.len() as u32).map(KindId) {
            let Some(bounds) = self.bounds_of(kind) else {
                continue;
            };
            let singles = bounds.exits_of(catalog, app).filter_map(|(variant, exit)| {
                let to_stage = catalog.variant(variant)?.exit(exit)?.after_stage;
                let profile = &catalog.profile;
                profile.latency(kind, variant, 0, to_stage, Some(exit), 1)
            });
            if let Some(latency) = singles.min()
                && found.fastest.is_none_or(|(least, _)| latency < least)
            {
                found.fastest = Some((latency, kind));
            }
            if let Some(best) = self.best_on(catalog, app, kind, bounds)
                && best.batch.is_better_than(found.best.batch)
            {
                found.best = best;
            }
        }
        found
    }
}

fn efficient(
    catalog: &Catalog,
    kind: KindId,
    (v, variant): (VariantId, &Variant),
    exit: ExitId,
) -> Option<EfficientBatch> {
    let to_stage = variant.exit(exit)?.after_stage;
    let slo = catalog.app(variant.app)?.slo;
    let at = |size| {
        let latency = catalog
            .profile
            .latency(kind, v, 0, to_stage, Some(exit), size)?;
        Some(EfficientBatch {
            kind,
            size,
            latency,
        })
    };
    let mut best = at(1)?;
    let steps = 2..=variant.max_batch.min(STEPS_MAX);
    let powers = (STEPS_MAX.ilog2() + 1..u32::BITS).map(|log| 1 << log);
    let powers = powers.take_while(|&size| size <= variant.max_batch);
    for batch in steps.chain(powers).filter_map(at) {
        if batch.latency.0 <= slo.0 / 2 && batch.is_better_than(best) {
            best = batch;
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{App, Capabilities, Exit, Late, Penalty, Task, WorkerSpec};
    use crate::profile::{Profile, ProfileRow};

    /// One app of 50 ms; a batch of n takes 10 + 2 n ms on `slow` and 2 + n ms on `fast`.
    fn catalog() -> Catalog {
        let variant = |name: &str| Variant {
            name: name.to_owned(),
            app: AppId(0),
            stages: 1,
            exits: vec![Exit {
                name: "final".to_owned(),
                after_stage: 1,
                accuracy: 0.9,
                recall: vec![0.9],
                confusion: None,
            }],
            memory_bytes: 1,
            max_batch: 64,
            quality_unknown: false,
        };
        let row = |variant: u32, batch: u32, ms: u64| ProfileRow {
            kind: KindId(0),
            variant: VariantId(variant),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            batch,
            latency: Micros::from_millis(ms),
            energy_uj: None,
        };
        let rows = (1..=64).flat_map(|n| {
            let ms = u64::from(n);
            [row(0, n, 10 + 2 * ms), row(1, n, 2 + ms)]
        });
        Catalog {
            apps: vec![App {
                name: "a".to_owned(),
                task: Task::Classify,
                classes: vec!["c".to_owned()],
                slo: Micros::from_millis(50),
                penalty: Penalty::Step,
                prior: vec![1.0],
                frequencies: vec![1.0],
                sneakpeek: None,
                late: Late::Shed,
            }],
            variants: vec![variant("slow"), variant("fast")],
            kinds: vec!["cpu-1".to_owned()],
            workers: vec![WorkerSpec {
                name: "w0".to_owned(),
                kind: KindId(0),
                memory_bytes: 10,
                queue_max: 1,
                parked_max: 0,
                can: Capabilities::ALL,
                transfer: Micros::ZERO,
                outstanding: 1,
            }],
            profile: Profile::new(0.95, rows, []),
            ..Catalog::default()
        }
    }

    #[test]
    fn the_efficient_batch_takes_at_most_half_the_slo() {
        let capacity = Capacity::of(&catalog());
        let of = |variant| capacity.efficient(KindId(0), VariantId(variant), ExitId(0));
        let batch = |size, ms| {
            Some(EfficientBatch {
                kind: KindId(0),
                size,
                latency: Micros::from_millis(ms),
            })
        };
        assert_eq!(of(0), batch(7, 24));
        assert_eq!(of(1), batch(23, 25));
        let app = capacity.app(AppId(0));
        assert_eq!(app.fastest, Some((Micros::from_millis(3), KindId(0))));
        assert_eq!(
            (app.best.variant, Some(app.best.batch)),
            (VariantId(1), of(1))
        );
    }
}
