//! The batches that workers can run: every variant and exit, with its accuracy and latencies.

use switchyard_core::catalog::{Catalog, Variant, WorkerSpec};
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};

use crate::scenario::SimError;
use crate::workload::WorkloadError;

/// One variant and exit on a worker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BatchOption {
    pub(super) variant: VariantId,
    pub(super) exit: ExitId,
    pub(super) stages: u32,
    /// Profiled accuracy.
    pub(super) accuracy: f64,
    /// By batch from 1, ascending.
    pub(super) latencies_us: Vec<u64>,
}

/// The options of every app on every worker, most accurate first.
#[derive(Clone, Debug)]
pub(super) struct BatchMenu {
    /// By worker, then by app.
    options: Vec<Vec<Vec<BatchOption>>>,
}

// === impl BatchMenu ===

impl BatchMenu {
    /// # Errors
    /// A worker cannot hold all models at once, or a larger batch takes less time.
    pub(super) fn new(catalog: &Catalog) -> Result<Self, SimError> {
        let workers = (0..).map(WorkerId).zip(&catalog.workers);
        let of_worker = |(worker, spec): (WorkerId, &WorkerSpec)| {
            let bytes: u64 = catalog.variants.iter().map(|v| v.memory_bytes).sum();
            if bytes > spec.memory_bytes {
                let name = &spec.name;
                let reason = format!(
                    "{name} holds {} of {bytes} bytes of models; an exact schedule has no time \
                     to load models, so raise memory_mb",
                    spec.memory_bytes
                );
                return Err(refused("memory_mb", reason));
            }
            let apps = (0..catalog.apps.len() as u32).map(AppId);
            apps.map(|app| options(catalog, worker, spec, app))
                .collect()
        };
        Ok(Self {
            options: workers.map(of_worker).collect::<Result<_, _>>()?,
        })
    }

    /// Most accurate first.
    pub(super) fn of(&self, worker: WorkerId, app: AppId) -> &[BatchOption] {
        let apps = self.options.get(worker.index());
        let options = apps.and_then(|apps| apps.get(app.index()));
        options.map_or(&[], Vec::as_slice)
    }

    #[cfg(test)]
    pub(super) fn from_options(options: Vec<Vec<Vec<BatchOption>>>) -> Self {
        Self { options }
    }
}

/// Without options that another one of at least the same accuracy beats at every batch.
fn options(
    catalog: &Catalog,
    worker: WorkerId,
    spec: &WorkerSpec,
    app: AppId,
) -> Result<Vec<BatchOption>, SimError> {
    let mut all = Vec::new();
    for (id, variant) in catalog.variants_of(app) {
        for exit in (0..variant.exits.len() as u32).map(ExitId) {
            if exit != variant.last_exit() && !spec.can.exits {
                continue;
            }
            all.extend(option(catalog, worker, (id, variant), exit)?);
        }
    }
    all.sort_by(|a, b| b.accuracy.total_cmp(&a.accuracy));
    let mut kept: Vec<BatchOption> = Vec::new();
    for option in all {
        if !kept.iter().any(|other| other.dominates(&option)) {
            kept.push(option);
        }
    }
    Ok(kept)
}

fn option(
    catalog: &Catalog,
    worker: WorkerId,
    (id, variant): (VariantId, &Variant),
    exit: ExitId,
) -> Result<Option<BatchOption>, SimError> {
    let Some(of) = variant.exit(exit) else {
        return Ok(None);
    };
    let latencies = (1..=variant.max_batch).map_while(|b| catalog.latency(worker, id, exit, b));
    let latencies_us: Vec<u64> = latencies.map(|latency| latency.0).collect();
    if !latencies_us.is_sorted() {
        let reason = format!(
            "of {} fall with a larger batch; an exact schedule takes profiles in which they grow",
            variant.name
        );
        return Err(refused("latencies", reason));
    }
    Ok((!latencies_us.is_empty()).then_some(BatchOption {
        variant: id,
        exit,
        stages: of.after_stage,
        accuracy: of.accuracy,
        latencies_us,
    }))
}

fn refused(part: &str, reason: String) -> SimError {
    WorkloadError::value(part, reason).into()
}

// === impl BatchOption ===

impl BatchOption {
    /// Whether it is at least as accurate and as fast at every batch of another option.
    fn dominates(&self, other: &Self) -> bool {
        let pairs = self.latencies_us.iter().zip(&other.latencies_us);
        self.accuracy >= other.accuracy
            && self.latencies_us.len() >= other.latencies_us.len()
            && pairs.into_iter().all(|(own, other)| own <= other)
    }
}
