//! The room of the workers that a plan names, as it is after the plan.

use super::state::PlanState;
use crate::ids::WorkerId;

/// Rooms by worker, read from the state once the plan names the worker.
#[derive(Debug, Default)]
pub(super) struct WorkerRooms {
    rooms: Vec<Option<WorkerRoom>>,
    /// Workers with a room.
    named: Vec<WorkerId>,
    /// The plan parks requests. To count those on a worker looks at its batches, and most plans park none.
    parks: bool,
}

/// The room of one worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerRoom {
    /// Batches that wait.
    pub(super) queued: u32,
    /// Parked requests; 0 when the plan parks none.
    pub(super) parked: u32,
}

// === impl WorkerRooms ===

impl WorkerRooms {
    pub(super) fn reset(&mut self, workers: usize, parks: bool) {
        for worker in self.named.drain(..) {
            self.rooms[worker.index()] = None;
        }
        self.rooms.resize(workers, None);
        self.parks = parks;
    }

    pub(super) fn of<S: PlanState>(&mut self, worker: WorkerId, state: &S) -> &mut WorkerRoom {
        let (named, parks) = (&mut self.named, self.parks);
        self.rooms[worker.index()].get_or_insert_with(|| {
            named.push(worker);
            WorkerRoom {
                queued: state.queued(worker),
                parked: if parks { state.parked(worker) } else { 0 },
            }
        })
    }
}
