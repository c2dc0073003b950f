//! Facts about live requests that the core does not know: class, hardness, phase.

use std::collections::VecDeque;

use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::time::Micros;

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveRequest {
    /// From its arrival to its deadline.
    pub(crate) deadline: Micros,
    /// Its class.
    pub(crate) label: u32,
    /// The phase of the workload it arrived in.
    pub(crate) phase: u32,
    /// Uniform in [0, 1): an answer is right if the recall of its class is larger, otherwise this
    /// selects the wrong class in the confusion row. Drawn at the arrival, so the request is as hard
    /// under every policy.
    pub(crate) hardness: f64,
    /// Whether metrics count it.
    pub(crate) is_counted: bool,
    /// The worker that holds its activations.
    pub(crate) parked: Option<WorkerId>,
}

/// Requests by id. Ids only grow, so this is a ring from the oldest live request to the newest, whose
/// slots are reused.
#[derive(Debug, Default)]
pub(crate) struct LiveRequests {
    /// Id of the first slot.
    base: u64,
    slots: VecDeque<Option<LiveRequest>>,
}

// === impl LiveRequests ===

impl LiveRequests {
    /// Inserts the next request and returns its id.
    pub(crate) fn insert(&mut self, live: LiveRequest) -> RequestId {
        self.slots.push_back(Some(live));
        RequestId(self.base + self.slots.len() as u64 - 1)
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut LiveRequest> {
        let at = id.0.checked_sub(self.base)?;
        self.slots.get_mut(at as usize)?.as_mut()
    }

    /// Forgets the activations that are parked on a worker.
    pub(crate) fn unpark(&mut self, worker: WorkerId) {
        let parked = self.slots.iter_mut().flatten();
        for live in parked.filter(|live| live.parked == Some(worker)) {
            live.parked = None;
        }
    }

    /// Removes a request that has ended.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<LiveRequest> {
        let at = id.0.checked_sub(self.base)?;
        let live = self.slots.get_mut(at as usize)?.take();
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        live
    }
}
