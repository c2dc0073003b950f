//! State saved for the next version of the policy.

use serde::{Deserialize, Serialize};
use switchyard_sdk::{RequestId, WorkerId};

use crate::class::RequestClass;
use crate::queues::{KnownRequest, WorkerQueues};

/// Marks a request in no worker's queue.
const NO_WORKER: u32 = u32::MAX;

/// Queues and turns. Only for the same workers and classes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RamsisState {
    classes: Vec<SavedClass>,
    requests: Vec<u64>,
    workers: Vec<u32>,
}

/// A class with its turn.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedClass {
    app: u32,
    slo_us: u64,
    workers: Vec<u32>,
    next: usize,
    share: f64,
}

// === impl RamsisState ===

impl RamsisState {
    pub(crate) fn of(classes: &[RequestClass], queues: &WorkerQueues) -> Self {
        Self {
            classes: classes.iter().map(SavedClass::of).collect(),
            requests: queues.known.iter().map(|known| known.id.0).collect(),
            workers: queues
                .known
                .iter()
                .map(|known| known.worker.map_or(NO_WORKER, |worker| worker.0))
                .collect(),
        }
    }

    /// Replaces the current state.
    ///
    /// # Errors
    /// The state is of other classes or workers.
    pub(crate) fn put(
        self,
        classes: &mut [RequestClass],
        queues: &mut WorkerQueues,
    ) -> Result<(), String> {
        let is_same = |(class, state): (&RequestClass, &SavedClass)| {
            let own = SavedClass::of(class);
            let same =
                (own.app, own.slo_us, &own.workers) == (state.app, state.slo_us, &state.workers);
            same && state.next < state.workers.len() && (0.0..=1.0).contains(&state.share)
        };
        let pairs = || classes.iter().zip(&self.classes);
        if classes.len() != self.classes.len() || !pairs().all(is_same) {
            return Err("state: saved for other tables or workers".to_owned());
        }
        let is_sorted = self.requests.is_sorted_by(|a, b| a < b);
        if self.requests.len() != self.workers.len() || !is_sorted {
            return Err("state: requests: must ascend, each with a worker".to_owned());
        }
        for (class, state) in classes.iter_mut().zip(&self.classes) {
            (class.next, class.share) = (state.next, state.share);
        }
        let known = self.requests.iter().zip(&self.workers);
        let known = known.map(|(&id, &worker)| KnownRequest {
            id: RequestId(id),
            worker: (worker != NO_WORKER).then_some(WorkerId(worker)),
        });
        queues.known = known.collect();
        Ok(())
    }
}

impl SavedClass {
    fn of(class: &RequestClass) -> Self {
        Self {
            app: class.app.0,
            slo_us: class.slo_us,
            workers: class.workers.iter().map(|(worker, _)| worker.0).collect(),
            next: class.next,
            share: class.share,
        }
    }
}
