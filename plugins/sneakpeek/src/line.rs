//! A worker's future, as far as a schedule fills it.

use switchyard_sdk::{Catalog, VariantId, WorkerId, WorkerRef};

use crate::model::{Cost, Model, Residents};

/// What a worker will have done and will hold once everything placed on it so far is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) worker: WorkerId,
    pub(crate) kind: usize,
    /// When it could start something new, on the host's clock.
    pub(crate) free_us: u64,
    residents: Residents,
    memory_left_bytes: u64,
    memory_bytes: u64,
}

// === impl Line ===

impl Line {
    /// A worker as the window shows it.
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
            kind: spec.kind().index(),
            free_us: worker.free_at_us(),
            residents,
            memory_left_bytes: worker.free_memory_bytes(),
            memory_bytes: spec.memory_bytes,
        }
    }

    /// What a model costs here; none when this worker cannot run it.
    pub(crate) fn cost<'m>(&self, model: &'m Model) -> Option<&'m Cost> {
        let cost = model.by_kind.get(self.kind)?;
        let runs = !cost.latencies_us.is_empty() && model.memory_bytes <= self.memory_bytes;
        runs.then_some(cost)
    }

    pub(crate) fn holds(&self, variant: VariantId) -> bool {
        self.residents.contains(variant)
    }

    /// Makes a variant resident. A switch to one that was not takes its load time, once:
    /// what runs after it finds it there. Where memory is short, everything else is taken to
    /// be evicted for it, since the window does not say what the host would evict.
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

    /// Nothing but the name differs: what is good on one is as good on the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        Self {
            worker: other.worker,
            ..*self
        } == *other
    }
}
