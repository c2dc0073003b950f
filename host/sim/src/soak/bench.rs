//! The workers' side of a case: batches that run, hang or were lost, and parked activations.

use std::collections::{BTreeSet, VecDeque};

use switchyard_core::event::{BatchEnd, Launch};
use switchyard_core::ids::{BatchId, RequestId};
use switchyard_core::time::Time;

/// Batches of earlier incarnations that are remembered.
const OLD_MAX: usize = 4;

/// One worker.
#[derive(Debug)]
pub(super) struct Bench {
    /// The batch and its end.
    pub(super) running: Option<(Time, Launch)>,
    /// A batch that does not end, because of which the worker counts as lost.
    pub(super) hung: Option<Launch>,
    /// The batch that ended last.
    pub(super) last: Option<BatchId>,
    /// Batches that it lost.
    pub(super) old: VecDeque<Launch>,
    /// Requests whose activations it holds.
    pub(super) parked: BTreeSet<RequestId>,
    /// Batches take this many times the profile's time.
    pub(super) factor: u64,
}

// === impl Bench ===

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            running: None,
            hung: None,
            last: None,
            old: VecDeque::new(),
            parked: BTreeSet::new(),
            factor: 1,
        }
    }

    /// The worker is lost or begins anew: batches and activations are gone.
    pub(super) fn forget(&mut self) {
        let running = self.running.take().map(|(_, launch)| launch);
        for launch in running.into_iter().chain(self.hung.take()) {
            self.old.truncate(OLD_MAX - 1);
            self.old.push_front(launch);
        }
        self.parked.clear();
    }

    /// A batch ended: its requests are parked if no exit ran.
    pub(super) fn ended(&mut self, launch: &Launch, end: &BatchEnd) {
        self.last = Some(launch.batch);
        for &id in &launch.requests {
            match launch.exit.is_none() && *end == BatchEnd::Done {
                true => self.parked.insert(id),
                false => self.parked.remove(&id),
            };
        }
    }

    /// Its batch does not end.
    pub(super) fn hang(&mut self) {
        if let Some((end, _)) = &mut self.running {
            *end = Time::NEVER;
        }
    }
}
