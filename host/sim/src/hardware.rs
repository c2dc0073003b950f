//! Workers in virtual time: how long a batch takes, what it costs, which models are resident.

mod cells;
mod memory;
mod service;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::{Event, Run};
use switchyard_core::ids::{BatchId, VariantId, WorkerId};
use switchyard_core::time::Micros;
use thiserror::Error;

use crate::random::Stream;
use cells::Cells;
use memory::Memory;

pub use service::{Quantile, ServiceError, ServiceTimes};

/// What one batch takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Making its variant resident, zero when it was.
    pub load: Micros,
    /// Running it.
    pub service: Micros,
    /// Energy in microjoules, where the profile has it.
    pub energy_uj: Option<u64>,
}

/// A batch that the profile says nothing of.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the profile has no latency for kind {kind}, variant {variant}, stages [{from_stage}, {to_stage}), \
     exit {exit}, batch {batch}"
)]
pub struct NoCell {
    /// Kind of worker.
    pub kind: String,
    /// The variant.
    pub variant: String,
    /// First stage.
    pub from_stage: u32,
    /// One past the last stage.
    pub to_stage: u32,
    /// The exit, `none` where the activations are parked.
    pub exit: String,
    /// Requests in the batch.
    pub batch: usize,
}

/// All workers of a catalog.
#[derive(Debug)]
pub(crate) struct Hardware {
    cells: Cells,
    service: ServiceTimes,
    workers: Vec<WorkerState>,
}

#[derive(Debug)]
struct WorkerState {
    memory: Memory,
    running: Option<BatchId>,
    /// The models have changed since the core was told.
    untold: bool,
}

// === impl Hardware ===

impl Hardware {
    /// Idle workers without models.
    pub(crate) fn new(catalog: &Catalog, service: ServiceTimes) -> Self {
        let worker = |memory_bytes| WorkerState {
            memory: Memory::new(memory_bytes),
            running: None,
            untold: false,
        };
        Self {
            cells: Cells::new(catalog),
            service,
            workers: catalog
                .workers
                .iter()
                .map(|w| worker(w.memory_bytes))
                .collect(),
        }
    }

    /// Makes every variant that fits resident, in the catalog's order, as the live server does
    /// when it starts.
    pub(crate) fn preload(&mut self, catalog: &Catalog) {
        for worker in &mut self.workers {
            for (v, variant) in (0..).zip(&catalog.variants) {
                if variant.memory_bytes <= worker.memory.free_bytes() {
                    worker.memory.acquire(VariantId(v), variant.memory_bytes);
                    worker.untold = true;
                }
            }
        }
    }

    /// Starts a batch and says what it will take.
    pub(crate) fn start(
        &mut self,
        run: &Run,
        catalog: &Catalog,
        random: &mut Stream,
    ) -> Result<Cost, NoCell> {
        let kind = catalog.workers[run.worker.index()].kind;
        let cell = self.cells.get(kind, run, catalog);
        let cell = cell.ok_or_else(|| NoCell::of(run, catalog))?;
        let worker = &mut self.workers[run.worker.index()];
        debug_assert!(
            worker.running.is_none(),
            "a worker was given a second batch"
        );
        worker.running = Some(run.batch);
        let bytes = catalog.variants[run.variant.index()].memory_bytes;
        let mut load = Micros::ZERO;
        if worker.memory.acquire(run.variant, bytes) {
            worker.untold = true;
            load = catalog.profile.load_time(kind, run.variant);
        }
        Ok(Cost {
            load,
            service: self.service.draw(cell.latency, kind, run, random),
            energy_uj: cell.energy_uj,
        })
    }

    /// Ends a worker's batch.
    pub(crate) fn finish(&mut self, worker: WorkerId) -> Option<BatchId> {
        self.workers[worker.index()].running.take()
    }

    /// What the core must be told of a worker's models, if they have changed.
    pub(crate) fn residency(&mut self, worker: WorkerId) -> Option<Event> {
        let held = &mut self.workers[worker.index()];
        std::mem::take(&mut held.untold).then(|| Event::Residency {
            worker,
            resident: held.memory.variants(),
            free_bytes: held.memory.free_bytes(),
        })
    }
}

// === impl NoCell ===

impl NoCell {
    fn of(run: &Run, catalog: &Catalog) -> Self {
        let variant = &catalog.variants[run.variant.index()];
        let kind = catalog.workers[run.worker.index()].kind;
        let exit = run.exit.and_then(|exit| variant.exit(exit));
        Self {
            kind: catalog.kinds[kind.index()].clone(),
            variant: variant.name.clone(),
            from_stage: run.from_stage,
            to_stage: run.to_stage,
            exit: exit.map_or_else(|| "none".to_owned(), |exit| exit.name.clone()),
            batch: run.requests.len(),
        }
    }
}
