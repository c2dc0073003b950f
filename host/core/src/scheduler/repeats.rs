//! Requests whose batch failed or was lost: tried again, or ended with the reason.

use super::Scheduler;
use super::batches::ran;
use crate::cost::Cost;
use crate::event::Command;
use crate::ids::{RequestId, VariantId, WorkerId};
use crate::request::{DroppedFrom, Outcome};
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::worker::{Members, RunningBatch, WorkerBatch};

/// Tries of a request after its batch of one has failed. One is enough for a fault that passes,
/// such as memory that another batch held, and bounds the cost of a request that always fails.
const FAILED_REPEATS_MAX: u8 = 1;

/// Tries of a request after its batch was lost with the worker. Two, of which the last is alone: if
/// one request takes its workers down, it ends after three of them, and fails no other request.
const LOST_REPEATS_MAX: u8 = 2;

impl Scheduler {
    /// A batch failed, and the worker serves on. The requests of a larger batch are tried one by one
    /// on the same worker; the one at fault ends with its own reason. Those of a worker that is
    /// leaving are tried elsewhere.
    pub(super) fn fail(
        &mut self,
        now: Time,
        worker: WorkerId,
        running: &RunningBatch,
        reason: &str,
        repeatable: bool,
    ) {
        let batch = &running.batch;
        let is_up = self.is_up(worker);
        for &id in &batch.members {
            self.forget_progress(id);
            let Some(entry) = self.table.get_mut(id) else {
                continue;
            };
            let repeats = &mut entry.repeats;
            let is_single = batch.members.len() == 1;
            let is_last = is_single && repeats.failed >= FAILED_REPEATS_MAX;
            repeats.failed = repeats.failed.saturating_add(1);
            if !repeatable || is_last {
                self.end_failed(now, id, running, reason);
            } else if is_single || !is_up {
                self.again(now, id, running, reason);
            } else {
                self.try_alone(now, worker, id, batch);
            }
        }
    }

    /// A batch was lost with its worker, which is not up any more.
    pub(super) fn lose(&mut self, now: Time, running: &RunningBatch, reason: &str) {
        let batch = &running.batch;
        for &id in &batch.members {
            let Some(entry) = self.table.get_mut(id) else {
                continue;
            };
            let lost = &mut entry.repeats.lost;
            *lost = lost.saturating_add(1);
            if *lost > LOST_REPEATS_MAX {
                self.end_failed(now, id, running, reason);
                continue;
            }
            let is_last = *lost == LOST_REPEATS_MAX;
            let alone = is_last.then(|| self.free_for(now, batch.variant)).flatten();
            match alone.filter(|_| self.in_time(now, id)) {
                Some(worker) => match self.whole_for(worker, batch) {
                    Some(whole) => self.try_alone(now, worker, id, &whole),
                    None => self.try_alone(now, worker, id, batch),
                },
                None => self.again(now, id, running, reason),
            }
        }
    }

    /// Takes the progress from a request, which starts over; the worker forgets its activations.
    pub(super) fn forget_progress(&mut self, id: RequestId) {
        let Some(progress) = self.table.clear_progress(id) else {
            return;
        };
        let (worker, request) = (progress.worker, id);
        if let Some(held) = self.workers.get_mut(worker) {
            held.parked = held.parked.saturating_sub(1);
        }
        self.out.push_back(Command::Release { worker, request });
    }

    /// Makes a request pending again if its deadline allows another try.
    fn again(&mut self, now: Time, id: RequestId, running: &RunningBatch, reason: &str) {
        let batch = &running.batch;
        if !self.in_time(now, id) {
            self.end_failed(now, id, running, reason);
        } else if batch.pinned {
            self.table.set_state(id, RequestState::Pending);
            self.place_pinned(now, id, batch.variant);
        } else {
            self.set_pending(id);
        }
    }

    /// Queues a batch of one request, from its inputs to where `failed` was to take it.
    fn try_alone(&mut self, now: Time, worker: WorkerId, id: RequestId, failed: &WorkerBatch) {
        let app = self.table.get(id).map(|entry| entry.request.app);
        let app = app.and_then(|app| self.catalog.app(app));
        if app.is_some_and(|app| app.late.drops()) && !self.in_time(now, id) {
            let why = Outcome::Dropped(DroppedFrom::Queue);
            return self.end(now, id, why, None);
        }
        let mut batch = WorkerBatch {
            id: self.next_batch(),
            from_stage: 0,
            members: Members::from_slice(&[id]),
            cost: Cost::ZERO,
            expected: Micros::ZERO,
            load: Micros::ZERO,
            decided: failed.decided.clone(),
            ..*failed
        };
        self.predict(worker, &mut batch);
        let queued = RequestState::Queued(worker, batch.id);
        self.workers[worker].alone.push_back(batch);
        self.table.set_state(id, queued);
        self.may_start.push(worker);
    }

    /// A lost batch from its inputs to the last exit, if it parks its requests, for which another worker
    /// may have no room, or ends at an exit that this worker does not answer from.
    fn whole_for(&self, worker: WorkerId, batch: &WorkerBatch) -> Option<WorkerBatch> {
        let variant = self.catalog.variant(batch.variant)?;
        let (can, last) = (self.catalog.worker(worker)?.can, variant.last_exit());
        let runs = batch.exit.is_some_and(|exit| exit == last || can.exits);
        (!runs).then(|| WorkerBatch {
            to_stage: variant.stages,
            exit: Some(last),
            ..batch.clone()
        })
    }

    /// The worker that is up, can hold the variant and is free first.
    fn free_for(&mut self, now: Time, variant: VariantId) -> Option<WorkerId> {
        let memory = self.catalog.variant(variant)?.memory_bytes;
        self.workers.first_to_end(now, memory)
    }

    fn end_failed(&mut self, now: Time, id: RequestId, running: &RunningBatch, reason: &str) {
        let by = Some((running.batch.decided.clone(), Some(ran(running))));
        self.end(now, id, Outcome::Failed(reason.to_owned()), by);
    }
}
