//! L(t, p): what one request of each app costs on each worker. Worked out once per catalog.

use switchyard_sdk::catalog::Variant;
use switchyard_sdk::{AppId, Catalog, ExitId, VariantId, WorkerId};

use crate::settings::{ModelChoice, Settings};

/// Every way to answer, by app and worker.
#[derive(Clone, Debug)]
pub(crate) struct Models {
    /// Per app and worker, the preferred one first.
    runs: Vec<Vec<Run>>,
    workers: usize,
}

/// One request on one worker, whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    accuracy: f64,
    pub(crate) latency_us: u64,
    /// To make the variant resident.
    pub(crate) load_us: u64,
    /// Where the profile knows it.
    pub(crate) energy_uj: Option<u64>,
    /// The parts of a long run; empty where it is not worth cutting or cannot be cut.
    pub(crate) slices: Vec<Slice>,
}

/// One part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) to_stage: u32,
    pub(crate) latency_us: u64,
}

// === impl Models ===

impl Models {
    /// Of every app on every worker.
    pub(crate) fn of_catalog(catalog: &Catalog, settings: &Settings) -> Self {
        let workers = catalog.workers().len();
        let mut runs: Vec<Vec<Run>> = Vec::new();
        for app in catalog.apps() {
            for worker in catalog.workers() {
                let can = |v: &Variant<'_>| catalog.can_run(worker.id, v.id);
                let all = catalog.variants_of(app.id).filter(can);
                let mut all: Vec<Run> = all.map(|v| Run::of(catalog, worker.id, v)).collect();
                match settings.model {
                    ModelChoice::Accurate => all.sort_by(|a, b| {
                        let by_accuracy = b.accuracy.total_cmp(&a.accuracy);
                        by_accuracy.then(a.latency_us.cmp(&b.latency_us))
                    }),
                    ModelChoice::Fast => all.sort_by_key(|run| run.latency_us),
                }
                runs.push(all);
            }
        }
        let mut models = Self { runs, workers };
        if settings.algorithm.slices() {
            models.cut(catalog, settings);
        }
        models
    }

    /// The way to answer on a worker that reaches an accuracy, or the preferred one where none
    /// does.
    pub(crate) fn run(&self, app: AppId, worker: WorkerId, min_accuracy: f64) -> Option<&Run> {
        let runs = &self.runs[app.index() * self.workers + worker.index()];
        // The client's number was rounded to an f32 on its way.
        let reaches = |run: &&Run| run.accuracy >= min_accuracy - 1e-6;
        runs.iter().find(reaches).or_else(|| runs.first())
    }

    /// As [`run`](Self::run), for a variant that is given.
    pub(crate) fn run_of(&self, app: AppId, worker: WorkerId, variant: VariantId) -> Option<&Run> {
        let runs = &self.runs[app.index() * self.workers + worker.index()];
        runs.iter().find(|run| run.variant == variant)
    }

    /// Some run can be sliced.
    pub(crate) fn any_sliced(&self) -> bool {
        self.runs.iter().flatten().any(|run| !run.slices.is_empty())
    }

    /// The first app of which some worker's energy is not known.
    pub(crate) fn without_energy(&self) -> Option<AppId> {
        let at = self
            .runs
            .iter()
            .position(|runs| runs.iter().any(|run| run.energy_uj.is_none()))?;
        Some(AppId((at / self.workers) as u32))
    }

    /// Section 4.4: only long models are sliced. Long is a matter of what there is beside it.
    fn cut(&mut self, catalog: &Catalog, settings: &Settings) {
        let shortest_us = self.runs.iter().flatten().map(|run| run.latency_us).min();
        let Some(shortest_us) = shortest_us else {
            return;
        };
        let long_us = settings.slice_over * shortest_us as f64;
        let workers = self.workers;
        for (at, run) in (0..)
            .zip(&mut self.runs)
            .flat_map(|(at, r)| r.iter_mut().map(move |r| (at, r)))
        {
            if run.latency_us as f64 >= long_us {
                let worker = WorkerId((at as usize % workers) as u32);
                run.slices = slices(catalog, worker, run, settings.slices);
            }
        }
    }
}

// === impl Run ===

impl Run {
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
            accuracy: variant.accuracy(),
            // A zero would be divided by.
            latency_us: latencies.first().copied().unwrap_or(0).max(1),
            load_us: catalog.load_us(worker, variant.id),
            energy_uj: row.and_then(|row| row.energy_uj),
            slices: Vec::new(),
        }
    }

    /// What the slices take, the cost of cutting included.
    pub(crate) fn sliced_us(&self) -> u64 {
        self.slices.iter().map(|slice| slice.latency_us).sum()
    }

    /// The first cut behind so many stages.
    pub(crate) fn next_cut(&self, stages_run: u32) -> Option<Slice> {
        self.slices
            .iter()
            .find(|slice| slice.to_stage > stages_run)
            .copied()
    }
}

/// Cuts a run at stage boundaries into parts whose longest is as short as can be (section 3.3:
/// even slices). Empty when the profile does not know every stage.
fn slices(catalog: &Catalog, worker: WorkerId, run: &Run, parts: usize) -> Vec<Slice> {
    let stages = catalog.variant(run.variant).stages;
    let latency = |from: u32, to: u32| {
        let exit = (to == stages).then_some(run.exit);
        let of_range = catalog.run_latencies_us(worker, run.variant, from, to, exit);
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

/// Ends of at most `parts` runs of neighbours, so that the largest sum is least; the ends come
/// as early as that allows.
pub(crate) fn even(single: &[u64], parts: usize) -> Vec<u32> {
    let longest = single.iter().max().copied().unwrap_or(0);
    let mut low = longest.max(single.iter().sum::<u64>().div_ceil(parts as u64));
    // Whole sums of neighbours are all that a bound can be; few enough to try in turn.
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
