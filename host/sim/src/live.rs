//! What the simulator knows of the requests inside and the core does not: their class, how
//! hard they are, where they are counted.

use std::collections::VecDeque;

use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::time::Micros;

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    /// Its deadline, from its arrival.
    pub(crate) deadline: Micros,
    /// Its class.
    pub(crate) label: u32,
    /// The phase of the workload it arrived in.
    pub(crate) phase: u32,
    /// Uniform in [0, 1): an answer is right when the recall of its class is above, and wrong in
    /// the way that the rest of the class's confusion row has there. Drawn at the arrival, so
    /// that the same request is as hard under every policy.
    pub(crate) hardness: f64,
    /// Where its activations are.
    pub(crate) parked: Option<WorkerId>,
}

/// Requests by id. Ids only grow, so this is a ring from the oldest live request to the newest,
/// whose slots are used again and again.
#[derive(Debug, Default)]
pub(crate) struct LiveRequests {
    /// Id of the first slot.
    base: u64,
    slots: VecDeque<Option<Live>>,
}

// === impl LiveRequests ===

impl LiveRequests {
    /// Takes the next request in and gives it its id.
    pub(crate) fn insert(&mut self, live: Live) -> RequestId {
        self.slots.push_back(Some(live));
        RequestId(self.base + self.slots.len() as u64 - 1)
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Live> {
        let at = id.0.checked_sub(self.base)?;
        self.slots.get_mut(at as usize)?.as_mut()
    }

    /// Takes a request out for good.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Live> {
        let at = id.0.checked_sub(self.base)?;
        let live = self.slots.get_mut(at as usize)?.take();
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        live
    }
}
