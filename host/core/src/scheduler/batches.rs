//! Batches on workers: starting and finishing them.

use super::Scheduler;
use crate::event::{BatchEnd, Command, Launch, Ran};
use crate::ids::{BatchId, RequestId, WorkerId};
use crate::request::{DroppedFrom, Outcome, Progress};
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::worker::{Members, RunningBatch, Worker, WorkerBatch};

impl Scheduler {
    /// Inserts a batch at its position in a worker's queue and fills in its expected time.
    pub(super) fn enqueue(
        &mut self,
        worker: WorkerId,
        place: u32,
        mut batch: WorkerBatch,
    ) -> BatchId {
        let id = batch.id;
        let held = &mut self.workers[worker];
        batch.expected = held.expected(&self.catalog, worker, &batch);
        let at = held.queue.len().min(place as usize);
        held.queue.insert(at, batch);
        self.may_start.push(worker);
        id
    }

    /// Names the variants of the batches behind a running one if any is not resident: the driver
    /// can load it while the running batch computes.
    fn prepare(&mut self, worker: WorkerId) {
        let held = &self.workers[worker];
        if held.running.is_none() || held.queue.is_empty() && held.lanes.is_empty() {
            return;
        }
        let soon = held.soon();
        let missing = soon.iter().any(|v| !held.resident.contains(v));
        if missing && soon != held.prepared {
            self.workers[worker].prepared.clone_from(&soon);
            self.out.push_back(Command::Prepare { worker, soon });
        }
    }

    /// Every worker that runs nothing takes its next batch from its queue or a lane.
    pub(super) fn start_workers(&mut self, now: Time) {
        if !self.may_start.is_empty() {
            let mut workers = std::mem::take(&mut self.may_start);
            // In the catalog's order, independent of the order of events.
            workers.sort_unstable();
            workers.dedup();
            for worker in workers.drain(..) {
                if !self.workers[worker].up || self.workers[worker].running.is_some() {
                    self.prepare(worker);
                    continue;
                }
                let held = &mut self.workers[worker];
                let next = held.alone.pop_front().or_else(|| held.queue.pop_front());
                if let Some(batch) = next.or_else(|| self.batch_from_lane(worker)) {
                    self.start(now, worker, batch);
                    self.prepare(worker);
                }
            }
            self.may_start = workers;
        }
        debug_assert!(
            !self.workers.iter().any(Worker::could_start),
            "a worker could start and is not in `may_start`"
        );
    }

    /// A batch from the lane whose head waits longest, among the lanes with enough requests.
    fn batch_from_lane(&mut self, worker: WorkerId) -> Option<WorkerBatch> {
        let lanes = &mut self.workers[worker].lanes;
        let lane = lanes
            .iter_mut()
            .filter(|lane| lane.is_ready())
            .min_by_key(|lane| lane.waiting.front().copied())?;
        let variant = self.catalog.variant(lane.variant)?;
        let to_stage = variant.exit(lane.exit)?.after_stage;
        let size = lane.waiting.len().min(lane.max_batch as usize);
        let members: Members = lane.waiting.drain(..size).collect();
        let (variant, exit) = (lane.variant, lane.exit);
        let mut batch = WorkerBatch {
            id: self.next_batch(),
            variant,
            from_stage: 0,
            to_stage,
            exit: Some(exit),
            members,
            expected: Micros::ZERO,
            decided: self.decided_by_host(),
            pinned: false,
        };
        batch.expected = self.workers[worker].expected(&self.catalog, worker, &batch);
        Some(batch)
    }

    fn start(&mut self, now: Time, worker: WorkerId, batch: WorkerBatch) {
        for &id in &batch.members {
            self.table
                .set_state(id, RequestState::Running(worker, batch.id));
        }
        self.out.push_back(Command::Launch(Launch {
            batch: batch.id,
            worker,
            variant: batch.variant,
            from_stage: batch.from_stage,
            to_stage: batch.to_stage,
            exit: batch.exit,
            requests: batch.members.clone(),
            soon: self.workers[worker].soon(),
        }));
        let overdue_at = self.overdue_at(now, worker, &batch);
        self.batches_running += 1;
        self.overdue_from = Some(match self.overdue_from {
            Some(earliest) => earliest.min(overdue_at),
            None => overdue_at,
        });
        let held = &mut self.workers[worker];
        held.prepared.clear();
        held.running = Some(RunningBatch {
            expected_end: now + batch.expected,
            since: now,
            overdue_at,
            batch,
        });
    }

    pub(super) fn handle_finished(
        &mut self,
        now: Time,
        worker: WorkerId,
        batch: BatchId,
        end: BatchEnd,
    ) {
        let Some(held) = self.workers.get_mut(worker) else {
            return;
        };
        if let Some(late) = held.overdue.take_if(|late| late.batch.id == batch) {
            return self.recover(now, worker, &late, end);
        }
        let Some(running) = held.running.take_if(|running| running.batch.id == batch) else {
            return; // The worker was down meanwhile.
        };
        match end {
            BatchEnd::Done => self.settle(now, worker, &running),
            BatchEnd::Failed { reason, repeatable } => {
                self.fail(now, worker, &running, &reason, repeatable);
            }
            BatchEnd::Lost { reason } => {
                held.running = Some(running);
                return self.handle_worker_down(now, worker, &reason);
            }
        }
        self.batch_left();
        self.may_start.push(worker);
        self.worker_changed();
    }

    /// A worker has finished its batch or come back: a cause for a window.
    pub(super) fn worker_changed(&mut self) {
        self.trigger.happened().completion = true;
        self.rescue.happened().completion = true;
    }

    /// One batch fewer runs.
    pub(super) fn batch_left(&mut self) {
        self.batches_running = self.batches_running.saturating_sub(1);
        if self.batches_running == 0 {
            self.overdue_from = None;
        }
    }

    /// A batch succeeded: its requests are answered, or parked and pending again.
    fn settle(&mut self, now: Time, worker: WorkerId, running: &RunningBatch) {
        let batch = &running.batch;
        for &id in &batch.members {
            let outcome = match batch.exit {
                None => {
                    self.park(now, worker, batch, id);
                    continue;
                }
                Some(exit) => Outcome::Answered {
                    variant: batch.variant,
                    exit,
                    in_time: self.in_time(now, id),
                },
            };
            self.end(
                now,
                id,
                outcome,
                Some((batch.decided.clone(), Some(ran(running)))),
            );
        }
    }

    fn park(&mut self, now: Time, worker: WorkerId, batch: &WorkerBatch, id: RequestId) {
        let Some(entry) = self.table.get_mut(id) else {
            // Cancelled while the batch ran: its activations have no owner.
            let request = id;
            self.out.push_back(Command::Release { worker, request });
            return;
        };
        let first_time = entry.progress.is_none();
        entry.progress = Some(Progress {
            worker,
            variant: batch.variant,
            stages_run: batch.to_stage,
        });
        let app = entry.request.app;
        self.workers[worker].parked += u32::from(first_time);
        let drops_late = self.catalog.app(app).is_some_and(|app| app.drops_late);
        if drops_late && !self.in_time(now, id) {
            self.end(now, id, Outcome::Dropped(DroppedFrom::BetweenStages), None);
        } else {
            self.set_pending(id);
        }
    }

    /// Makes the requests of a batch that will not run pending again; pinned ones get a new
    /// batch.
    pub(super) fn give_back(&mut self, now: Time, batch: WorkerBatch) {
        for id in batch.members {
            if batch.pinned {
                self.table.set_state(id, RequestState::Pending);
                self.place_pinned(now, id, batch.variant);
            } else {
                self.set_pending(id);
            }
        }
    }

    pub(super) fn empty_lanes(&mut self, worker: WorkerId) {
        for lane in std::mem::take(&mut self.workers[worker].lanes) {
            for id in lane.waiting {
                self.set_pending(id);
            }
        }
    }
}

pub(super) fn ran(running: &RunningBatch) -> Ran {
    Ran {
        batch: running.batch.id,
        size: running.batch.members.len() as u32,
        since: running.since,
    }
}
