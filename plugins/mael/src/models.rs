//! L(t, p): the cost of one request of each app on each worker. Computed once per catalog.

use switchyard_sdk::catalog::Variant;
use switchyard_sdk::{AppId, Catalog, ExitId, VariantId, WorkerId};

use crate::settings::{MaelSettings, ModelChoice};

/// The variants of each app on each worker, with their costs.
#[derive(Clone, Debug)]
pub(crate) struct CostTable {
    /// Per app and worker, the preferred variant first.
    costs: Vec<Vec<VariantCost>>,
    workers: usize,
}

/// One request on all stages of a variant, on one worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VariantCost {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    accuracy: f64,
    pub(crate) latency_us: u64,
    /// Load time if the variant is not resident.
    pub(crate) load_us: u64,
    /// None if the profile has none.
    pub(crate) energy_uj: Option<u64>,
    /// The slices of a long task; empty if the task is short or the profile has no stage latencies.
    pub(crate) slices: Vec<Slice>,
}

/// One slice of a task, up to `to_stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) to_stage: u32,
    pub(crate) latency_us: u64,
}

// === impl CostTable ===

impl CostTable {
    /// The costs of every app on every worker.
    pub(crate) fn of_catalog(catalog: &Catalog, settings: &MaelSettings) -> Self {
        let workers = catalog.workers().len();
        let mut costs: Vec<Vec<VariantCost>> = Vec::new();
        for app in catalog.apps() {
            for worker in catalog.workers() {
                let can = |v: &Variant<'_>| catalog.can_run(worker.id, v.id);
                let all = catalog.variants_of(app.id).filter(can);
                let mut all: Vec<VariantCost> = all
                    .map(|v| VariantCost::of(catalog, worker.id, v))
                    .collect();
                match settings.model {
                    ModelChoice::Accurate => all.sort_by(|a, b| {
                        let by_accuracy = b.accuracy.total_cmp(&a.accuracy);
                        by_accuracy.then(a.latency_us.cmp(&b.latency_us))
                    }),
                    ModelChoice::Fast => all.sort_by_key(|cost| cost.latency_us),
                }
                costs.push(all);
            }
        }
        let mut models = Self { costs, workers };
        if settings.algorithm.slices() {
            models.cut(catalog, settings);
        }
        models
    }

    /// The first variant on a worker that reaches an accuracy; the preferred one if none does.
    pub(crate) fn preferred(
        &self,
        app: AppId,
        worker: WorkerId,
        min_quality: f64,
    ) -> Option<&VariantCost> {
        let costs = &self.costs[app.index() * self.workers + worker.index()];
        // The client's value was rounded to f32.
        let reaches = |cost: &&VariantCost| cost.accuracy >= min_quality - 1e-6;
        costs.iter().find(reaches).or_else(|| costs.first())
    }

    /// The cost of a given variant on a worker.
    pub(crate) fn of_variant(
        &self,
        app: AppId,
        worker: WorkerId,
        variant: VariantId,
    ) -> Option<&VariantCost> {
        let costs = &self.costs[app.index() * self.workers + worker.index()];
        costs.iter().find(|cost| cost.variant == variant)
    }

    /// Whether any task can be sliced.
    pub(crate) fn any_sliced(&self) -> bool {
        self.costs
            .iter()
            .flatten()
            .any(|cost| !cost.slices.is_empty())
    }

    /// The first app with a variant that has no energy in the profile.
    pub(crate) fn without_energy(&self) -> Option<AppId> {
        let at = self
            .costs
            .iter()
            .position(|costs| costs.iter().any(|cost| cost.energy_uj.is_none()))?;
        Some(AppId((at / self.workers) as u32))
    }

    /// Section 4.4: only long tasks are sliced. Long is relative to the shortest task of the
    /// catalog.
    fn cut(&mut self, catalog: &Catalog, settings: &MaelSettings) {
        let shortest_us = self
            .costs
            .iter()
            .flatten()
            .map(|cost| cost.latency_us)
            .min();
        let Some(shortest_us) = shortest_us else {
            return;
        };
        let long_us = settings.slice_over * shortest_us as f64;
        let workers = self.workers;
        for (at, cost) in (0..)
            .zip(&mut self.costs)
            .flat_map(|(at, r)| r.iter_mut().map(move |r| (at, r)))
        {
            if cost.latency_us as f64 >= long_us {
                let worker = WorkerId((at as usize % workers) as u32);
                cost.slices = slices(catalog, worker, cost, settings.slices);
            }
        }
    }
}

// === impl VariantCost ===

impl VariantCost {
    fn of(catalog: &Catalog, worker: WorkerId, variant: Variant<'_>) -> Self {
        let exit = variant.last_exit();
        let kind = catalog.worker(worker).kind();
        let row = catalog.raw().profile.iter().find(|row| {
            (row.kind, row.variant, row.exit) == (kind.0, variant.id.0, Some(exit.0))
                && (row.from_stage, row.to_stage, row.batch) == (0, variant.stages, 1)
        });
        let latencies = catalog.latencies_us(worker, variant.id, exit);
        Self {
            variant: variant.id,
            exit,
            accuracy: variant.quality(),
            // At least 1: scores divide by it.
            latency_us: latencies.first().copied().unwrap_or(0).max(1),
            load_us: catalog.load_us(worker, variant.id),
            energy_uj: row.and_then(|row| row.energy_uj),
            slices: Vec::new(),
        }
    }

    /// Latency of all slices, with the cost of cutting.
    pub(crate) fn sliced_us(&self) -> u64 {
        self.slices.iter().map(|slice| slice.latency_us).sum()
    }

    /// The slice that ends first after `stages_run` stages.
    pub(crate) fn next_cut(&self, stages_run: u32) -> Option<Slice> {
        self.slices
            .iter()
            .find(|slice| slice.to_stage > stages_run)
            .copied()
    }
}

/// Cuts a task at stage boundaries so that its longest slice is shortest (section 3.3: even
/// slices). Empty if the profile has no latency for a stage.
fn slices(catalog: &Catalog, worker: WorkerId, cost: &VariantCost, parts: usize) -> Vec<Slice> {
    let stages = catalog.variant(cost.variant).stages;
    let latency = |from: u32, to: u32| {
        let exit = (to == stages).then_some(cost.exit);
        let of_range = catalog.run_latencies_us(worker, cost.variant, from, to, exit);
        of_range.first().copied()
    };
    let single: Option<Vec<u64>> = (0..stages).map(|stage| latency(stage, stage + 1)).collect();
    let Some(single) = single.filter(|single| single.len() > 1) else {
        return Vec::new();
    };
    let cuts = even(&single, parts);
    let ranges = std::iter::once(0).chain(cuts.iter().copied()).zip(&cuts);
    let slices = ranges.map(|(from, &to_stage)| {
        latency(from, to_stage).map(|latency_us| Slice {
            to_stage,
            latency_us,
        })
    });
    slices.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The ends of at most `parts` consecutive ranges whose largest sum is least; the earliest such
/// ends.
pub(crate) fn even(single: &[u64], parts: usize) -> Vec<u32> {
    let longest = single.iter().max().copied().unwrap_or(0);
    let mut low = longest.max(single.iter().sum::<u64>().div_ceil(parts as u64));
    // The bound is a sum of consecutive stages; there are few enough to try each.
    let mut sums: Vec<u64> = Vec::new();
    for from in 0..single.len() {
        let ends = single[from..].iter().scan(0, |sum, &part| {
            *sum += part;
            Some(*sum)
        });
        sums.extend(ends.filter(|&sum| sum >= low));
    }
    sums.sort_unstable();
    for bound in sums {
        low = bound;
        if cut(single, low).len() <= parts {
            break;
        }
    }
    cut(single, low)
}

fn cut(single: &[u64], bound: u64) -> Vec<u32> {
    let (mut ends, mut sum) = (Vec::new(), 0);
    for (at, &part) in (0u32..).zip(single) {
        if sum + part > bound {
            ends.push(at);
            sum = 0;
        }
        sum += part;
    }
    ends.push(single.len() as u32);
    ends
}
