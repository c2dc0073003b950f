//! Workers in virtual time: how long a batch takes, what it costs, which models are resident.

mod cells;
mod memory;
mod service;

use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::event::{Event, Run};
use switchyard_core::ids::{BatchId, KindId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::{Micros, Time};
use thiserror::Error;

use crate::random::Stream;
use cells::Cells;
use memory::{InUse, Load, Memory};

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
    "the profile has no latency for kind {kind}, variant {app}/{variant}, stages [{from_stage}, {to_stage}), \
     exit {exit}, batch {batch}"
)]
pub struct NoCell {
    /// Kind of worker.
    pub kind: String,
    /// The app.
    pub app: String,
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
    kind: KindId,
    memory: Memory,
    running: Option<(BatchId, InUse)>,
    /// The models have changed since the core was told.
    untold: bool,
}

// === impl Hardware ===

impl Hardware {
    /// Idle workers without models.
    pub(crate) fn new(catalog: &Catalog, service: ServiceTimes) -> Self {
        let worker = |spec: &WorkerSpec| WorkerState {
            kind: spec.kind,
            memory: Memory::new(spec.memory_bytes),
            running: None,
            untold: false,
        };
        Self {
            cells: Cells::new(catalog),
            service,
            workers: catalog.workers.iter().map(worker).collect(),
        }
    }

    /// Makes every variant that fits resident, in the catalog's order, as the live server does
    /// when it starts.
    pub(crate) fn preload(&mut self, catalog: &Catalog) {
        for worker in &mut self.workers {
            for v in (0..catalog.variants.len() as u32).map(VariantId) {
                let load = load_of(catalog, worker.kind, v);
                if load.bytes <= worker.memory.free_bytes() {
                    worker.memory.acquire(Time::ZERO, v, load, &[]);
                    worker.untold = true;
                }
            }
        }
    }

    /// Starts a batch and says what it will take.
    pub(crate) fn start(
        &mut self,
        now: Time,
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
        let of = load_of(catalog, kind, run.variant);
        let resident = worker.memory.holds(run.variant);
        let (in_use, load) = worker.memory.acquire(now, run.variant, of, &run.soon);
        worker.running = Some((run.batch, in_use));
        worker.untold |= !resident;
        Ok(Cost {
            load,
            service: self.service.draw(cell.latency, kind, run, random),
            energy_uj: cell.energy_uj,
        })
    }

    /// Ends a worker's batch.
    pub(crate) fn finish(&mut self, worker: WorkerId) -> Option<BatchId> {
        let (batch, _) = self.workers[worker.index()].running.take()?;
        Some(batch)
    }

    /// A worker is told what it will need; when a load that begins for it ends.
    pub(crate) fn prepare(
        &mut self,
        now: Time,
        worker: WorkerId,
        soon: Soon,
        catalog: &Catalog,
    ) -> Option<Time> {
        let held = &mut self.workers[worker.index()];
        let kind = held.kind;
        held.memory
            .prepare(now, soon, |v| load_of(catalog, kind, v))
    }

    /// A load ahead of time has ended; when the next one does.
    pub(crate) fn loaded(
        &mut self,
        now: Time,
        worker: WorkerId,
        catalog: &Catalog,
    ) -> Option<Time> {
        let held = &mut self.workers[worker.index()];
        let kind = held.kind;
        held.untold = true;
        held.memory.loaded(now, |v| load_of(catalog, kind, v))
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

fn load_of(catalog: &Catalog, kind: KindId, variant: VariantId) -> Load {
    Load {
        bytes: catalog.variants[variant.index()].memory_bytes,
        time: catalog.profile.load_time(kind, variant),
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
            app: catalog.apps[variant.app.index()].name.clone(),
            variant: variant.name.clone(),
            from_stage: run.from_stage,
            to_stage: run.to_stage,
            exit: exit.map_or_else(|| "none".to_owned(), |exit| exit.name.clone()),
            batch: run.requests.len(),
        }
    }
}
