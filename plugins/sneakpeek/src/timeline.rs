//! A worker's state after the groups that a schedule places on it.

use switchyard_sdk::catalog::Capabilities;
use switchyard_sdk::{Catalog, KindId, VariantId, WorkerId, WorkerRef};

use crate::model::{CandidateModel, ModelCost, Residents};

/// When a worker is free, and its resident variants then, after all groups placed on it so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerTimeline {
    pub(crate) worker: WorkerId,
    kind: KindId,
    /// Whether it answers at early exits.
    has_exits: bool,
    /// When it can start the next batch, on the host's clock.
    pub(crate) free_us: u64,
    residents: Residents,
    memory_left_bytes: u64,
    memory_bytes: u64,
}

// === impl WorkerTimeline ===

impl WorkerTimeline {
    /// The worker at the start of a window.
    pub(crate) fn new(worker: WorkerRef<'_>, catalog: &Catalog) -> Self {
        let mut residents = Residents::default();
        for variant in catalog
            .variants()
            .filter(|variant| worker.holds(variant.id))
        {
            residents.insert(variant.id);
        }
        let spec = catalog.worker(worker.id());
        Self {
            worker: worker.id(),
            kind: spec.kind(),
            has_exits: spec.can.contains(Capabilities::EXITS),
            free_us: worker.free_at_us(),
            residents,
            memory_left_bytes: worker.free_memory_bytes(),
            memory_bytes: spec.memory_bytes,
        }
    }

    /// The cost of a candidate; none if this worker cannot run it.
    pub(crate) fn cost<'m>(&self, model: &'m CandidateModel) -> Option<&'m ModelCost> {
        let cost = model.by_kind.get(self.kind.index())?;
        let fits = model.memory_bytes <= self.memory_bytes;
        let answers = self.has_exits || !model.is_early;
        (fits && answers && !cost.latencies_us.is_empty()).then_some(cost)
    }

    pub(crate) fn holds(&self, variant: VariantId) -> bool {
        self.residents.contains(variant)
    }

    /// Makes a variant resident, which takes its load time if it was not. If memory is short, all
    /// other variants are assumed evicted: the window does not tell the host's choice.
    pub(crate) fn load(&mut self, variant: VariantId, memory_bytes: u64, load_us: u64) {
        if self.holds(variant) {
            return;
        }
        if memory_bytes > self.memory_left_bytes {
            self.residents = Residents::default();
            self.memory_left_bytes = self.memory_bytes;
        }
        self.memory_left_bytes = self.memory_left_bytes.saturating_sub(memory_bytes);
        self.residents.insert(variant);
        self.free_us = self.free_us.saturating_add(load_us);
    }

    /// Whether only the worker's id differs.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        Self {
            worker: other.worker,
            ..*self
        } == *other
    }
}
