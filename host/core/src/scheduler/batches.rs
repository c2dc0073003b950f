//! Batches on workers: starting and finishing them.

use super::Scheduler;
use crate::cost::Cost;
use crate::event::{BatchEnd, Command, Launch, Ran};
use crate::ids::{BatchId, KindId, RequestId, WorkerId};
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
        self.predict(worker, &mut batch);
        let held = &mut self.workers[worker];
        let at = held.queue.len().min(place as usize);
        held.queue.insert(at, batch);
        self.may_start.push(worker);
        id
    }

    /// Names the variants of the batches behind a running one if any is not resident: the driver
    /// can load it while the running batch computes.
    fn prepare(&mut self, worker: WorkerId) {
        let held = &self.workers[worker];
        let is_alone = held.queue.is_empty() && held.lanes.is_empty() && self.held.is_empty();
        if held.running.is_none() || is_alone {
            return;
        }
        let soon = self.soon(worker);
        let held = &self.workers[worker];
        let missing = soon.iter().any(|v| !held.resident.contains(v));
        if missing && soon != held.prepared {
            self.workers[worker].prepared.clone_from(&soon);
            self.out.push_back(Command::Prepare { worker, soon });
        }
    }

    /// Every worker that has a place takes its next batches from its queue or a lane.
    pub(super) fn start_workers(&mut self, now: Time) {
        if !self.may_start.is_empty() {
            let mut workers = std::mem::take(&mut self.may_start);
            // In the catalog's order, independent of the order of events.
            workers.sort_unstable();
            workers.dedup();
            for worker in workers.drain(..) {
                loop {
                    if !self.workers[worker].up || !self.workers[worker].has_place() {
                        self.prepare(worker);
                        break;
                    }
                    let Some(batch) = self.take_next(now, worker) else {
                        break;
                    };
                    if let Some(batch) = self.keep_feasible(now, worker, batch) {
                        self.start(now, worker, batch);
                    }
                }
            }
            self.may_start = workers;
        }
        debug_assert!(
            !self.workers.iter().any(Worker::could_start),
            "a worker could start and is not in `may_start`"
        );
    }

    /// A batch from the lane whose head waits longest, among the lanes with enough requests. While
    /// more than a batch wait there, the requests that a full batch would answer late leave first.
    pub(super) fn batch_from_lane(&mut self, now: Time, worker: WorkerId) -> Option<WorkerBatch> {
        let lanes = (0..).zip(&self.workers[worker].lanes);
        let ready = lanes.filter(|(_, lane)| lane.is_ready());
        let (at, _) = ready.min_by_key(|(_, lane)| lane.waiting.front().copied())?;
        let lane = &self.workers[worker].lanes[at];
        let (variant, exit, max_batch) = (lane.variant, lane.exit, lane.max_batch as usize);
        let mut batch = WorkerBatch {
            id: self.next_batch(),
            variant,
            from_stage: 0,
            to_stage: self.catalog.variant(variant)?.exit(exit)?.after_stage,
            exit: Some(exit),
            members: Members::new(),
            cost: Cost::ZERO,
            expected: Micros::ZERO,
            load: Micros::ZERO,
            decided: self.decided_by_host(),
            pinned: false,
            late: false,
        };
        let full = self.time_of(now, worker, &batch, Cost::rows(max_batch));
        let begins = self.workers[worker].busy_until(now);
        loop {
            let waiting = &self.workers[worker].lanes[at].waiting;
            let is_crowded = waiting.len() > max_batch;
            let first = waiting.front().copied().filter(|_| is_crowded);
            let Some(id) = first.filter(|&id| self.is_late_after(begins, id, full)) else {
                break;
            };
            self.workers[worker].lanes[at].waiting.pop_front();
            self.give_up(now, id);
        }
        let lane = &mut self.workers[worker].lanes[at];
        let size = lane.waiting.len().min(max_batch);
        batch.members = lane.take(size).collect();
        // Fewer than `min_batch` may be left.
        self.watch_lane(worker, variant, exit);
        self.predict(worker, &mut batch);
        Some(batch)
    }

    /// Fills in the times of a batch that goes to the end of a worker's queue.
    pub(super) fn predict(&self, worker: WorkerId, batch: &mut WorkerBatch) {
        batch.cost = self.costs.of_all(&self.table, &batch.members);
        let held = &self.workers[worker];
        let profiled = held.profiled(&self.catalog, worker, batch);
        batch.load = held.load(&self.catalog, worker, batch);
        let kind = self.catalog.worker(worker).map_or(KindId(0), |w| w.kind);
        let slowdown = self.estimates.of_series(self.now, batch.series(kind));
        batch.expected = slowdown.of(profiled) + batch.load;
    }

    /// Compares the time of a batch with the profile's.
    fn observe(&mut self, now: Time, worker: WorkerId, running: &RunningBatch) {
        let batch = &running.batch;
        let Some(kind) = self.catalog.worker(worker).map(|worker| worker.kind) else {
            return;
        };
        if batch.load == Micros::ZERO {
            let took = now.since(running.since);
            let series = batch.series(kind);
            // Rows may have left or joined it since it was predicted.
            let profiled = self.workers[worker].profiled(&self.catalog, worker, batch);
            self.estimates.observe(now, series, profiled, took);
        }
    }

    pub(super) fn start(&mut self, now: Time, worker: WorkerId, batch: WorkerBatch) {
        for &id in &batch.members {
            self.table
                .set_state(id, RequestState::Running(worker, batch.id));
        }
        self.note_overtaking(now, &batch);
        self.out.push_back(Command::Launch(Launch {
            batch: batch.id,
            worker,
            variant: batch.variant,
            from_stage: batch.from_stage,
            to_stage: batch.to_stage,
            exit: batch.exit,
            requests: batch.members.clone(),
            cost: batch.cost,
            soon: self.soon(worker),
        }));
        self.batches_running += 1;
        let held = &mut self.workers[worker];
        held.prepared.clear();
        let batch = RunningBatch {
            expected_end: now + batch.expected,
            since: now,
            overdue_at: Time::NEVER,
            batch,
        };
        match held.running {
            None => self.begin(now, worker, batch),
            Some(_) => held.sent.push_back(batch),
        }
    }

    /// A batch is the one that its worker runs, from now on or behind its overdue ones.
    pub(super) fn begin(&mut self, now: Time, worker: WorkerId, mut running: RunningBatch) {
        let overdue_at = self.overdue_at(now, worker, &running.batch);
        running.since = now;
        running.expected_end = now + running.batch.expected;
        running.overdue_at = overdue_at;
        self.overdue_from = Some(match self.overdue_from {
            Some(earliest) => earliest.min(overdue_at),
            None => overdue_at,
        });
        self.workers[worker].running = Some(running);
    }

    /// Takes a batch from its worker, which runs the next one that it has.
    fn take_running(
        &mut self,
        now: Time,
        worker: WorkerId,
        batch: BatchId,
    ) -> Option<RunningBatch> {
        let held = self.workers.get_mut(worker)?;
        let is_it = |running: &mut RunningBatch| running.batch.id == batch;
        if let Some(running) = held.running.take_if(is_it) {
            if let Some(next) = held.sent.pop_front() {
                self.begin(now, worker, next);
            }
            return Some(running);
        }
        // The worker runs several at a time.
        let at = held.sent.iter().position(|sent| sent.batch.id == batch)?;
        held.sent.remove(at)
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
        let is_it = |had: &RunningBatch| had.batch.id == batch;
        if let Some(at) = held.overdue.iter().position(is_it) {
            let late = held.overdue.remove(at);
            return self.recover(now, worker, &late, end);
        }
        if !held.has().any(is_it) {
            return; // The worker was down meanwhile.
        }
        if let BatchEnd::Lost { reason } = end {
            return self.handle_worker_down(now, worker, &reason);
        }
        let Some(running) = self.take_running(now, worker, batch) else {
            return;
        };
        match end {
            BatchEnd::Done => {
                self.observe(now, worker, &running);
                self.settle(now, worker, &running);
            }
            BatchEnd::Failed { reason, repeatable } => {
                self.fail(now, worker, &running, &reason, repeatable);
            }
            BatchEnd::Lost { .. } => {}
        }
        self.batch_left();
        self.may_start.push(worker);
        self.note_completion();
    }

    /// A worker has finished its batch or come back: a cause for a window.
    pub(super) fn note_completion(&mut self) {
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
        let is_up = self.is_up(worker);
        let entry = self.table.get_mut(id);
        let Some(entry) = entry.filter(|_| is_up) else {
            // Cancelled while the batch ran, or its worker is leaving: nothing continues here.
            self.start_over(now, worker, id);
            return;
        };
        let first_time = entry.progress.is_none();
        entry.progress = Some(Progress {
            worker,
            variant: batch.variant,
            stages_run: batch.to_stage,
        });
        self.workers[worker].parked += u32::from(first_time);
        self.between_stages(now, id);
    }

    /// A request whose activations the worker forgets waits for its first stage again.
    fn start_over(&mut self, now: Time, worker: WorkerId, id: RequestId) {
        match self.table.get(id).and_then(|entry| entry.progress) {
            Some(_) => self.forget_progress(id),
            None => self.out.push_back(Command::Release {
                worker,
                request: id,
            }),
        }
        if self.table.get(id).is_some() {
            self.between_stages(now, id);
        }
    }

    fn between_stages(&mut self, now: Time, id: RequestId) {
        let app = self.table.get(id).map(|entry| entry.request.app);
        let app = app.and_then(|app| self.catalog.app(app));
        if app.is_some_and(|app| app.late.drops()) && !self.in_time(now, id) {
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
