//! Workers in virtual time: service times, energy, resident models.

mod model_memory;
mod profiled;
mod service;

use std::collections::VecDeque;

use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::event::{Event, Launch};
use switchyard_core::ids::{BatchId, KindId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_core::time::{Micros, Time};
use thiserror::Error;

use crate::random::Stream;
use model_memory::{ModelMemory, VariantInUse, VariantLoad};
use profiled::ProfiledBatches;

pub use service::{Quantile, ServiceError, ServiceTimes};

/// Time and energy of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCost {
    /// Time on the way to its worker, and behind the worker's other batches.
    pub waits: Micros,
    /// Time to make its variant resident, zero if it was.
    pub load: Micros,
    /// Service time.
    pub service: Micros,
    /// Energy in microjoules, if the profile has it.
    pub energy_uj: Option<u64>,
}

/// A batch that the profile does not contain.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the profile has no latency for kind {kind}, variant {app}/{variant}, stages [{from_stage}, {to_stage}), \
     exit {exit}, batch {batch}"
)]
pub struct UnprofiledBatch {
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
    /// The exit; `none` if the activations are parked.
    pub exit: String,
    /// Requests in the batch.
    pub batch: usize,
}

/// All workers of a catalog.
#[derive(Debug)]
pub(crate) struct Hardware {
    profiled: ProfiledBatches,
    service: ServiceTimes,
    workers: Vec<WorkerState>,
}

#[derive(Debug)]
struct WorkerState {
    kind: KindId,
    memory: ModelMemory,
    /// Its batches, the running one first.
    running: VecDeque<(BatchId, VariantInUse)>,
    /// When the last of them ends.
    busy_until: Time,
    outstanding: usize,
    /// Whether the models have changed since the last residency event.
    has_changed: bool,
}

// === impl Hardware ===

impl Hardware {
    /// Idle workers without models.
    pub(crate) fn new(catalog: &Catalog, service: ServiceTimes) -> Self {
        let worker = |spec: &WorkerSpec| WorkerState {
            kind: spec.kind,
            memory: ModelMemory::new(spec.memory_bytes),
            running: VecDeque::new(),
            busy_until: Time::ZERO,
            outstanding: spec.outstanding.max(1) as usize,
            has_changed: false,
        };
        Self {
            profiled: ProfiledBatches::new(catalog),
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
                    worker.has_changed = true;
                }
            }
        }
    }

    /// Starts a batch that arrives at its worker then, and returns its cost.
    pub(crate) fn start(
        &mut self,
        now: Time,
        arrives: Time,
        launch: &Launch,
        catalog: &Catalog,
        random: &mut Stream,
    ) -> Result<BatchCost, UnprofiledBatch> {
        let kind = catalog.workers[launch.worker.index()].kind;
        let profiled = self.profiled.get(kind, launch, catalog);
        let profiled = profiled.ok_or_else(|| UnprofiledBatch::of(launch, catalog))?;
        let worker = &mut self.workers[launch.worker.index()];
        debug_assert!(
            worker.running.len() < worker.outstanding,
            "a worker was given more batches than it may have"
        );
        let of = load_of(catalog, kind, launch.variant);
        let resident = worker.memory.holds(launch.variant);
        let (in_use, load) = worker
            .memory
            .acquire(arrives, launch.variant, of, &launch.soon);
        worker.running.push_back((launch.batch, in_use));
        worker.has_changed |= !resident;
        let service = self.service.draw(profiled.latency, kind, launch, random);
        let begins = match worker.running.len() {
            1 => arrives,
            _ => worker.busy_until.max(arrives),
        };
        worker.busy_until = begins + load + service;
        Ok(BatchCost {
            waits: begins.since(now),
            load,
            service,
            energy_uj: profiled.energy_uj,
        })
    }

    /// Ends a worker's batch. False when the worker no longer runs it.
    pub(crate) fn finish(&mut self, worker: WorkerId, batch: BatchId) -> bool {
        let running = &mut self.workers[worker.index()].running;
        let at = running.iter().position(|(running, _)| *running == batch);
        at.and_then(|at| running.remove(at)).is_some()
    }

    /// Takes a worker away: it loses its batch and its models.
    pub(crate) fn lose(&mut self, worker: WorkerId, catalog: &Catalog) {
        let held = &mut self.workers[worker.index()];
        held.memory = ModelMemory::new(catalog.workers[worker.index()].memory_bytes);
        held.running.clear();
        held.has_changed = false;
    }

    /// Tells a worker the variants that it needs soon; returns the end of the load that begins for
    /// them, if one does.
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

    /// Ends a load ahead of time; returns the end of the next one, if one begins.
    pub(crate) fn loaded(
        &mut self,
        now: Time,
        worker: WorkerId,
        catalog: &Catalog,
    ) -> Option<Time> {
        let held = &mut self.workers[worker.index()];
        let kind = held.kind;
        held.has_changed = true;
        held.memory.loaded(now, |v| load_of(catalog, kind, v))
    }

    /// The residency event of a worker, if its models have changed since the last one.
    pub(crate) fn residency(&mut self, worker: WorkerId) -> Option<Event> {
        let held = &mut self.workers[worker.index()];
        std::mem::take(&mut held.has_changed).then(|| Event::Residency {
            worker,
            resident: held.memory.variants(),
            free_bytes: held.memory.free_bytes(),
        })
    }
}

fn load_of(catalog: &Catalog, kind: KindId, variant: VariantId) -> VariantLoad {
    VariantLoad {
        bytes: catalog.variants[variant.index()].memory_bytes,
        time: catalog.profile.load_time(kind, variant),
    }
}

// === impl UnprofiledBatch ===

impl UnprofiledBatch {
    fn of(launch: &Launch, catalog: &Catalog) -> Self {
        let variant = &catalog.variants[launch.variant.index()];
        let kind = catalog.workers[launch.worker.index()].kind;
        let exit = launch.exit.and_then(|exit| variant.exit(exit));
        Self {
            kind: catalog.kinds[kind.index()].clone(),
            app: catalog.apps[variant.app.index()].name.clone(),
            variant: variant.name.clone(),
            from_stage: launch.from_stage,
            to_stage: launch.to_stage,
            exit: exit.map_or_else(|| "none".to_owned(), |exit| exit.name.clone()),
            batch: launch.requests.len(),
        }
    }
}
