//! Workers that are lost and come back, and requests that no worker can serve meanwhile.

use super::Scheduler;
use crate::event::{BatchEnd, Command, Notice};
use crate::ids::{RequestId, VariantId, WorkerId};
use crate::planted::Planted;
use crate::request::{Outcome, Rejection};
use crate::table::{RequestEntry, RequestState};
use crate::time::{Micros, Time};
use crate::worker::{RunningBatch, Worker, WorkerBatch};

use super::batches::ran;

/// A batch is overdue after this multiple of its expected time. Latencies of the profile are high
/// percentiles, so ten times as much is no batch of the tail.
const OVERDUE_FACTOR: u64 = 10;

/// Added to that, for a machine that stalls: swapping, or throttled by its container.
const OVERDUE_FLOOR: Micros = Micros::from_millis(5_000);

/// Added instead if the variant is not resident: disks and networks are slower at times than when
/// the load was profiled.
const OVERDUE_LOAD_FLOOR: Micros = Micros::from_millis(30_000);

/// A driver that is this much too late stood still, with its machine or by a signal: the ends of
/// batches may wait in its queue.
const STOOD_STILL: Micros = Micros::from_millis(250);

/// Time for these ends.
const CATCH_UP: Micros = Micros::from_millis(1_000);

impl Scheduler {
    /// When the worker of a batch that starts now counts as lost. Its overdue batches run first.
    pub(super) fn overdue_at(&self, now: Time, worker: WorkerId, batch: &WorkerBatch) -> Time {
        let overdue = self.workers[worker].overdue.iter();
        let batches = overdue.map(|late| &late.batch).chain([batch]);
        batches.fold(now, |at, batch| at + self.allowance(worker, batch))
    }

    /// The longest time of a batch whose worker does not count as lost.
    fn allowance(&self, worker: WorkerId, batch: &WorkerBatch) -> Micros {
        let kind = self.catalog.worker(worker).map(|spec| spec.kind);
        let load = kind.map(|kind| self.catalog.profile.load_time(kind, batch.variant));
        let expected = batch.expected + load.unwrap_or_default();
        let is_resident = self.workers[worker].resident.contains(&batch.variant);
        let floor = match is_resident {
            true => OVERDUE_FLOOR,
            false => OVERDUE_LOAD_FLOOR,
        };
        Micros(expected.0.saturating_mul(OVERDUE_FACTOR)) + floor
    }

    /// Gives up the workers whose batch is overdue.
    pub(super) fn drop_overdue(&mut self, now: Time) {
        if self.overdue_from.is_none_or(|from| now < from) {
            return;
        }
        let mut from = None;
        let mut overdue = Vec::new();
        for worker in self.workers.ids() {
            let running = self.workers[worker].running.as_ref();
            let Some(mut at) = running.map(|running| running.overdue_at) else {
                continue;
            };
            if at + STOOD_STILL < now {
                at = now + CATCH_UP;
                if let Some(running) = &mut self.workers[worker].running {
                    running.overdue_at = at;
                }
            }
            match at <= now {
                true => overdue.push(worker),
                false => from = Some(from.map_or(at, |from: Time| from.min(at))),
            }
        }
        self.overdue_from = from;
        for worker in overdue {
            self.give_up_worker(now, worker);
        }
    }

    /// Treats a worker as lost because its batch is overdue. Its thread may live: it is told to
    /// forget the activations that it holds.
    fn give_up_worker(&mut self, now: Time, worker: WorkerId) {
        let lost = self.workers[worker].take_all();
        let Some(running) = lost.first() else {
            return;
        };
        let (expected, ran_for) = (running.batch.expected, now.since(running.since));
        self.out.push_back(Command::Notice(Notice::WorkerOverdue {
            worker,
            batch: running.batch.id,
            expected,
            ran_for,
        }));
        lost.iter().for_each(|_| self.batch_left());
        for id in self.parked_on(worker) {
            self.forget_progress(id);
        }
        let reason = format!(
            "its worker does not answer: the batch has run for {ran_for} instead of {expected}"
        );
        self.vacate(now, worker, &lost, &reason);
        self.workers[worker].overdue.extend(lost);
    }

    /// An overdue batch, or one sent behind it, has ended: its worker serves again, unless it is leaving.
    /// The requests that still wait take its answer.
    pub(super) fn recover(
        &mut self,
        now: Time,
        worker: WorkerId,
        late: &RunningBatch,
        end: BatchEnd,
    ) {
        if let BatchEnd::Lost { reason } = &end {
            // Unless it serves again, its requests have been taken from it.
            if self.is_up(worker) {
                self.handle_worker_down(now, worker, reason);
            }
            return;
        }
        let batch = &late.batch;
        let held = &self.workers[worker];
        let is_back = !held.leaving && !held.up;
        if self.planted.is(Planted::ForgottenPlaces) {
            self.workers[worker].overdue.clear();
        }
        if is_back {
            self.workers[worker].up = true;
            self.out.push_back(Command::Notice(Notice::WorkerRecovered {
                worker,
                batch: batch.id,
                ran_for: now.since(late.since),
            }));
        }
        self.run_next(now, worker);
        for &id in &batch.members {
            match batch.exit {
                Some(exit) if end == BatchEnd::Done && self.waits(id) => {
                    self.forget_progress(id);
                    self.withdraw(id);
                    let outcome = Outcome::Answered {
                        variant: batch.variant,
                        exit,
                        in_time: self.in_time(now, id),
                    };
                    let by = Some((batch.decided.clone(), Some(ran(late))));
                    self.end(now, id, outcome, by);
                }
                Some(_) if end == BatchEnd::Done => {}
                // Its activations replaced those of a newer try, or it failed and left none.
                _ if self.is_parked_on(worker, id) => self.lose_activations(id),
                None => self.out.push_back(Command::Release {
                    worker,
                    request: id,
                }),
                Some(_) => {}
            }
        }
        if is_back {
            self.is_back(now, worker);
        } else if self.is_up(worker) {
            // It has one place more.
            self.may_start.push(worker);
            self.note_completion();
        }
    }

    /// A worker has ended an overdue batch: the next of them begins now, and the batches that it was sent
    /// since follow.
    fn run_next(&mut self, now: Time, worker: WorkerId) {
        let held = &mut self.workers[worker];
        let mut end = now;
        for late in &mut held.overdue {
            end += late.batch.expected;
            late.expected_end = end;
        }
        if let Some(next) = held.running.take() {
            self.begin(now, worker, next);
        }
    }

    fn is_parked_on(&self, worker: WorkerId, id: RequestId) -> bool {
        let progress = self.table.get(id).and_then(|entry| entry.progress);
        progress.is_some_and(|progress| progress.worker == worker)
    }

    /// The activations of a request are those of an earlier try, or none: it starts over, unless a batch
    /// reads them already.
    fn lose_activations(&mut self, id: RequestId) {
        if self.waits(id) {
            self.withdraw(id);
            self.held.remove(id);
            self.forget_progress(id);
            self.set_pending(id);
        }
    }

    fn waits(&self, id: RequestId) -> bool {
        let state = self.table.get(id).map(RequestEntry::state);
        state.is_some_and(|state| !matches!(state, RequestState::Running(..)))
    }

    pub(super) fn handle_worker_down(&mut self, now: Time, worker: WorkerId, reason: &str) {
        let Some(held) = self.workers.get_mut(worker) else {
            return;
        };
        held.overdue.clear();
        held.resident.clear();
        let lost = held.take_all();
        lost.iter().for_each(|_| self.batch_left());
        // Activations on a lost worker are lost: their requests start over.
        for id in self.parked_on(worker) {
            self.table.clear_progress(id);
        }
        self.workers[worker].parked = 0;
        self.vacate(now, worker, &lost, reason);
    }

    /// A worker takes no more batches. Those that it has may end: they keep the activations that they read,
    /// and park none.
    pub(super) fn handle_worker_leaving(&mut self, now: Time, worker: WorkerId) {
        let Some(held) = self.workers.get_mut(worker) else {
            return;
        };
        held.leaving = true;
        if !held.up {
            return;
        }
        for id in self.parked_on(worker) {
            if self.waits(id) {
                self.forget_progress(id);
            }
        }
        self.vacate(now, worker, &[], "");
    }

    /// Takes everything from a worker that is not up any more, once the requests that it had parked
    /// are to start over.
    fn vacate(&mut self, now: Time, worker: WorkerId, lost: &[RunningBatch], reason: &str) {
        let held = &mut self.workers[worker];
        held.up = false;
        let alone = std::mem::take(&mut held.alone);
        let mut queue = std::mem::take(&mut held.queue);
        if self.planted.is(Planted::StrandedQueue) {
            queue.clear();
        }
        self.note_served();
        for running in lost {
            self.lose(now, running, reason);
        }
        for batch in alone.into_iter().chain(queue) {
            self.give_back(now, batch);
        }
        self.empty_lanes(worker);
        self.worker_changed(now, worker);
    }

    /// The requests whose activations are on a worker, in their order.
    fn parked_on(&mut self, worker: WorkerId) -> Vec<RequestId> {
        let is_here = |e: &&RequestEntry| e.progress.is_some_and(|p| p.worker == worker);
        let live = self.table.iter();
        if self.workers[worker].parked == 0 {
            debug_assert_eq!(live.filter(is_here).count(), 0, "uncounted");
            return Vec::new();
        }
        let parked = live.filter(is_here);
        let parked: Vec<_> = parked.map(|entry| entry.request.id).collect();
        if !parked.is_empty() {
            // A policy that waited for this worker must decide anew.
            self.trigger.happened().arrival = true;
            self.rescue.happened().arrival = true;
        }
        parked
    }

    pub(super) fn handle_worker_up(&mut self, now: Time, worker: WorkerId) {
        if !self.is_up(worker) && self.is_running(worker) {
            self.handle_worker_down(now, worker, "its worker began anew");
        }
        let spec = self.catalog.worker(worker);
        let (Some(held), Some(spec)) = (self.workers.get_mut(worker), spec) else {
            return;
        };
        if !held.up {
            let incarnation = held.incarnation.saturating_add(1);
            *held = Worker {
                incarnation,
                ..Worker::new(spec)
            };
            self.is_back(now, worker);
        }
    }

    fn is_back(&mut self, now: Time, worker: WorkerId) {
        self.may_start.push(worker);
        self.note_completion();
        self.worker_changed(now, worker);
        self.note_served();
    }

    // ---- requests without a worker ----------------------------------------------------

    fn any_could_hold(&self, variant: VariantId) -> bool {
        let variant = self.catalog.variant(variant);
        variant.is_some_and(|v| self.workers.any_up_with(v.memory_bytes))
    }

    /// Brings `unserved` up to date.
    pub(super) fn note_served(&mut self) {
        let mut unserved = std::mem::take(&mut self.unserved);
        unserved.clear();
        unserved.resize(self.catalog.apps.len(), true);
        for variant in &self.catalog.variants {
            if let Some(unserved) = unserved.get_mut(variant.app.index())
                && *unserved
            {
                *unserved = !self.workers.any_up_with(variant.memory_bytes);
            }
        }
        self.unserved = unserved;
    }

    /// When the first request ends because no worker is up that could serve it.
    pub(super) fn unserved_until(&self) -> Option<Time> {
        // Looks at every live request, so only while it matters.
        if !self.unserved.contains(&true) && !self.holds_unserved() {
            return None;
        }
        let live = self.table.iter();
        let unserved = live.filter(|entry| self.is_unserved(entry));
        unserved.map(|entry| self.given_up_at(entry)).min()
    }

    /// Ends the requests that have waited past their deadline and the patience for a worker.
    pub(super) fn reject_unserved(&mut self, now: Time) {
        if self.unserved_until().is_none_or(|at| now < at) {
            return;
        }
        let live = self.table.iter();
        let due = live.filter(|e| self.is_unserved(e) && self.given_up_at(e) <= now);
        for id in due.map(|e| e.request.id).collect::<Vec<_>>() {
            self.withdraw(id);
            self.reject(now, id, Rejection::NoWorker);
        }
    }

    fn given_up_at(&self, entry: &RequestEntry) -> Time {
        entry.request.deadline + self.config.patience + Micros(1)
    }

    /// The host holds a request that no worker which is up could run.
    fn holds_unserved(&self) -> bool {
        let mut keys = self.held.keys();
        keys.any(|key| !self.any_can(key))
            // While all workers are up, one of them can run every accepted request.
            || self.workers.up() < self.workers.len() && self.late_has_pins()
    }

    fn late_has_pins(&self) -> bool {
        if !self.late_pins {
            return false;
        }
        let mut late = self.late.iter().filter_map(|&(_, id)| self.table.get(id));
        late.any(|entry| entry.request.pinned.is_some())
    }

    fn is_unserved(&self, entry: &RequestEntry) -> bool {
        let is_app_unserved = self.unserved.get(entry.request.app.index()) == Some(&true);
        match entry.state() {
            RequestState::Pending => is_app_unserved,
            RequestState::Held | RequestState::Late => match entry.request.pinned {
                Some(pinned) => !self.any_could_hold(pinned),
                None => is_app_unserved,
            },
            RequestState::Lane(_) | RequestState::Queued(..) | RequestState::Running(..) => false,
        }
    }
}
