//! Batches on workers: starting, finishing, losing them.

use super::Scheduler;
use crate::event::{Command, Ran, Run};
use crate::ids::{BatchId, RequestId, WorkerId};
use crate::request::{DroppedFrom, Outcome, Progress};
use crate::table::State;
use crate::time::{Micros, Time};
use crate::worker::{Batch, Members, Running, Worker};

impl Scheduler {
    /// Puts a batch at its place in a worker's queue and fills in its expected run time.
    pub(super) fn enqueue(&mut self, w: usize, place: u32, mut batch: Batch) -> BatchId {
        let id = batch.id;
        let worker = &mut self.workers[w];
        batch.expected = worker.expected(&self.catalog, WorkerId(w as u32), &batch);
        let at = worker.queue.len().min(place as usize);
        worker.queue.insert(at, batch);
        self.may_start.push(w);
        id
    }

    /// Says what the batches behind a running one need, where that is not resident: it can be
    /// loaded while the other one computes.
    fn prepare(&mut self, w: usize) {
        let worker = &self.workers[w];
        if worker.running.is_none() || worker.queue.is_empty() && worker.lanes.is_empty() {
            return;
        }
        let soon = worker.soon();
        let missing = soon.iter().any(|v| !worker.resident.contains(v));
        if missing && soon != worker.prepared {
            self.workers[w].prepared.clone_from(&soon);
            let worker = WorkerId(w as u32);
            self.out.push_back(Command::Prepare { worker, soon });
        }
    }

    /// Every worker that runs nothing takes its next batch, from its queue or a lane.
    pub(super) fn start_workers(&mut self, now: Time) {
        if !self.may_start.is_empty() {
            let mut workers = std::mem::take(&mut self.may_start);
            // In the catalog's order, whatever happened first.
            workers.sort_unstable();
            workers.dedup();
            for w in workers.drain(..) {
                if !self.workers[w].up || self.workers[w].running.is_some() {
                    self.prepare(w);
                    continue;
                }
                let next = self.workers[w].queue.pop_front();
                if let Some(batch) = next.or_else(|| self.batch_from_lane(w)) {
                    self.start(now, w, batch);
                    self.prepare(w);
                }
            }
            self.may_start = workers;
        }
        debug_assert!(
            !self.workers.iter().any(Worker::could_start),
            "a worker could start and nobody said so"
        );
    }

    /// The lane whose head waits longest, among those with enough for a batch.
    fn batch_from_lane(&mut self, w: usize) -> Option<Batch> {
        let lanes = &mut self.workers[w].lanes;
        let lane = lanes
            .iter_mut()
            .filter(|lane| lane.is_ready())
            .min_by_key(|lane| lane.waiting.front().copied())?;
        let variant = self.catalog.variant(lane.variant)?;
        let to_stage = variant.exit(lane.exit)?.after_stage;
        let size = lane.waiting.len().min(lane.max_batch as usize);
        let members: Members = lane.waiting.drain(..size).collect();
        let (variant, exit) = (lane.variant, lane.exit);
        let mut batch = Batch {
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
        batch.expected = self.workers[w].expected(&self.catalog, WorkerId(w as u32), &batch);
        Some(batch)
    }

    fn start(&mut self, now: Time, w: usize, batch: Batch) {
        let worker = WorkerId(w as u32);
        for &id in &batch.members {
            self.table.set_state(id, State::Running(worker, batch.id));
        }
        self.out.push_back(Command::Run(Run {
            batch: batch.id,
            worker,
            variant: batch.variant,
            from_stage: batch.from_stage,
            to_stage: batch.to_stage,
            exit: batch.exit,
            requests: batch.members.clone(),
            soon: self.workers[w].soon(),
        }));
        self.workers[w].prepared.clear();
        self.workers[w].running = Some(Running {
            expected_end: now + batch.expected,
            since: now,
            batch,
        });
    }

    pub(super) fn handle_finished(
        &mut self,
        now: Time,
        worker: WorkerId,
        batch: BatchId,
        result: Result<(), String>,
    ) {
        let Some(held) = self.workers.get_mut(worker.index()) else {
            return;
        };
        let Some(running) = held.running.take_if(|running| running.batch.id == batch) else {
            return; // Of a worker that was given up meanwhile.
        };
        self.may_start.push(worker.index());
        match result {
            Ok(()) => self.settle(now, worker, &running),
            Err(reason) => self.fail(now, &running, &reason),
        }
        self.trigger.happened().completion = true;
        self.rescue.happened().completion = true;
    }

    /// A batch ran as ordered: its requests are answered, or parked and pending again.
    fn settle(&mut self, now: Time, worker: WorkerId, running: &Running) {
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

    fn park(&mut self, now: Time, worker: WorkerId, batch: &Batch, id: RequestId) {
        let Some(entry) = self.table.get_mut(id) else {
            // Cancelled while it ran: its activations have no owner any more.
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
        self.workers[worker.index()].parked += u32::from(first_time);
        let drops_late = self.catalog.app(app).is_some_and(|app| app.drops_late);
        if drops_late && !self.in_time(now, id) {
            self.end(now, id, Outcome::Dropped(DroppedFrom::BetweenStages), None);
        } else {
            self.set_pending(id);
        }
    }

    fn fail(&mut self, now: Time, running: &Running, reason: &str) {
        for &id in &running.batch.members {
            let by = Some((running.batch.decided.clone(), Some(ran(running))));
            self.end(now, id, Outcome::Failed(reason.to_owned()), by);
        }
    }

    pub(super) fn handle_worker_down(&mut self, now: Time, worker: WorkerId, reason: &str) {
        let w = worker.index();
        let Some(held) = self.workers.get_mut(w) else {
            return;
        };
        held.up = false;
        held.resident.clear();
        let running = held.running.take();
        let queue = std::mem::take(&mut held.queue);
        if let Some(running) = running {
            self.fail(now, &running, reason);
        }
        self.restart_parked(worker);
        for batch in queue {
            self.give_back(now, batch);
        }
        self.empty_lanes(w);
    }

    /// Activations on a lost worker are lost: their requests begin again.
    fn restart_parked(&mut self, worker: WorkerId) {
        let parked: Vec<RequestId> = self
            .table
            .iter()
            .filter(|entry| entry.progress.is_some_and(|p| p.worker == worker))
            .map(|entry| entry.request.id)
            .collect();
        for id in parked {
            if let Some(entry) = self.table.get_mut(id) {
                entry.progress = None;
            }
        }
        self.workers[worker.index()].parked = 0;
    }

    pub(super) fn handle_worker_up(&mut self, worker: WorkerId) {
        let w = worker.index();
        let (Some(held), Some(spec)) = (self.workers.get_mut(w), self.catalog.workers.get(w))
        else {
            return;
        };
        if !held.up {
            *held = Worker::new(spec);
            self.may_start.push(w);
            self.trigger.happened().completion = true;
            self.rescue.happened().completion = true;
        }
    }

    /// The requests of a batch that will not run are pending again, or placed anew.
    pub(super) fn give_back(&mut self, now: Time, batch: Batch) {
        for id in batch.members {
            if batch.pinned {
                self.table.set_state(id, State::Pending);
                self.place_pinned(now, id, batch.variant);
            } else {
                self.set_pending(id);
            }
        }
    }

    pub(super) fn empty_lanes(&mut self, w: usize) {
        for lane in std::mem::take(&mut self.workers[w].lanes) {
            for id in lane.waiting {
                self.set_pending(id);
            }
        }
    }
}

fn ran(running: &Running) -> Ran {
    Ran {
        batch: running.batch.id,
        size: running.batch.members.len() as u32,
        since: running.since,
    }
}
