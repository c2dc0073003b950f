//! Workers.

use super::{NONE, Window};
use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::ids::{VariantId, WorkerId};

/// One worker and its state.
#[derive(Clone, Copy)]
pub struct WorkerRef<'a> {
    pub(super) window: Window<'a>,
    pub(super) at: usize,
}

// === impl WorkerRef ===

impl WorkerRef<'_> {
    /// Its id.
    pub fn id(&self) -> WorkerId {
        WorkerId(self.at as u32)
    }

    /// It takes dispatches.
    pub fn is_up(&self) -> bool {
        self.columns().up[self.at] != 0
    }

    /// It is up with nothing running and nothing queued.
    pub fn is_idle(&self) -> bool {
        self.is_up() && self.running_variant().is_none() && self.queued() == 0
    }

    /// When the running batch is expected to end, on the host's clock; now if none runs.
    pub fn busy_until_us(&self) -> u64 {
        self.columns().busy_until[self.at].max(self.window.raw.now)
    }

    /// When it could start a new batch, on the host's clock: after its running and queued ones, and
    /// never in the past.
    pub fn free_at_us(&self) -> u64 {
        self.columns().free_at[self.at].max(self.window.raw.now)
    }

    /// When the running batch began, on the host's clock.
    pub fn running_since_us(&self) -> Option<u64> {
        self.running_variant()
            .map(|_| self.columns().running_since[self.at])
    }

    /// Variant of the running batch.
    pub fn running_variant(&self) -> Option<VariantId> {
        Some(VariantId(self.columns().running_variant[self.at])).filter(|v| v.0 != NONE)
    }

    /// Batches that wait in its queue.
    pub fn queued(&self) -> u32 {
        self.columns().queued[self.at]
    }

    /// Requests parked here.
    pub fn parked(&self) -> u32 {
        self.columns().parked[self.at]
    }

    /// Bytes not taken by resident variants.
    pub fn free_memory_bytes(&self) -> u64 {
        self.columns().free_memory[self.at]
    }

    /// Its incarnation, from 1 on: one more each time that it came back without its resident variants
    /// and parked requests. 0 while it is away.
    pub fn incarnation(&self) -> u32 {
        self.columns().up[self.at]
    }

    /// Observed over profiled latency of its kind of workers.
    pub fn slowdown(&self) -> f64 {
        self.window
            .slowdown(self.window.catalog.worker(self.id()).kind())
    }

    /// Whether a variant is in its memory. Needs `WindowFields::RESIDENTS`.
    pub fn holds(&self, variant: VariantId) -> bool {
        self.window.index.holds(self.id(), variant)
    }

    fn columns(&self) -> &raw::Workers {
        &self.window.raw.workers
    }
}
