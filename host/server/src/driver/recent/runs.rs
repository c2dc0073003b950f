//! The batches of one slot, by kind.

use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_core::time::Micros;

/// A worker and the part of a variant that it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::driver) struct RunKind {
    pub(in crate::driver) worker: WorkerId,
    pub(in crate::driver) variant: VariantId,
    /// The first stage, and one past the last one.
    pub(in crate::driver) stages: (u32, u32),
    /// `None`: the requests are parked.
    pub(in crate::driver) exit: Option<ExitId>,
}

/// Batches of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) kind: RunKind,
    /// Batches that ended in the slot.
    pub(super) batches: u32,
    /// Their requests.
    pub(super) requests: u32,
    /// The part of the slot in which the worker computed them.
    pub(super) busy: Micros,
}

// === impl Run ===

impl Run {
    pub(super) fn new(kind: RunKind) -> Self {
        Self {
            kind,
            batches: 0,
            requests: 0,
            busy: Micros::ZERO,
        }
    }

    pub(super) fn ended(&mut self, requests: usize) {
        self.batches += 1;
        self.requests += requests as u32;
    }
}
