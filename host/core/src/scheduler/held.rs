//! Requests that the host starts: where they wait, and when it is their turn.
//!
//! On each worker the batches of the host and those of the policy take turns while both wait.
//! Before the host takes two turns in a row the policy is asked, so that it can use the worker.

use super::Scheduler;
use crate::cost::Cost;
use crate::held::HeldKey;
use crate::ids::{RequestId, VariantId, WorkerId};
use crate::residents::Soon;
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::worker::WorkerBatch;

impl Scheduler {
    /// Requests that wait for a decision, of the policy or of the host.
    pub(super) fn waiting(&self) -> usize {
        self.table.pending().len() + self.held.len()
    }

    /// Holds a request whose client pinned the variant, also while no worker is up that can run it.
    pub(super) fn place_pinned(&mut self, now: Time, id: RequestId, variant: VariantId) {
        let key = HeldKey {
            variant,
            from_stage: 0,
            on: None,
        };
        let worker = self.first_free(now, &key);
        self.hold(id, key, worker);
    }

    /// Takes a pending request from the policy: the host starts it. False when no worker could
    /// ever run it.
    pub(super) fn take_over(&mut self, now: Time, id: RequestId) -> bool {
        let Some(key) = self.quickest(id) else {
            return false;
        };
        let worker = self.first_free(now, &key);
        self.hold(id, key, worker);
        true
    }

    /// Chooses anew for the requests whose choice no worker that is up can run. A variant that a client
    /// pinned stays.
    pub(super) fn take_over_stranded(&mut self, now: Time) {
        let is_free = |id| {
            let entry = self.table.get(id);
            entry.is_some_and(|entry| entry.request.pinned.is_none())
        };
        if self.held.is_empty() {
            return;
        }
        let can = |key: &HeldKey| self.any_can(key);
        let held = self
            .held
            .all()
            .filter(|&(id, key)| is_free(id) && !can(key));
        for id in held.map(|(id, _)| id).collect::<Vec<_>>() {
            self.take_over(now, id);
        }
    }

    fn hold(&mut self, id: RequestId, key: HeldKey, worker: Option<WorkerId>) {
        let Some(entry) = self.table.get(id) else {
            return;
        };
        let deadline = entry.request.deadline;
        self.held.insert(key, deadline, id, worker);
        self.table.set_state(id, RequestState::Held);
        self.may_start.extend(worker);
    }

    /// The stages that a request has left, or the variant with the shortest latency on workers
    /// that are up, among those as accurate as the client asked if there is one.
    fn quickest(&mut self, id: RequestId) -> Option<HeldKey> {
        let entry = self.table.get(id)?;
        if let Some(progress) = entry.progress {
            return Some(HeldKey {
                variant: progress.variant,
                from_stage: progress.stages_run,
                on: Some(progress.worker),
            });
        }
        let (app, wanted) = (entry.request.app, f64::from(entry.request.min_accuracy));
        let mut best: Option<((bool, bool, Micros), VariantId)> = None;
        for (id, variant) in self.catalog.variants_of(app) {
            let exit = variant.last_exit();
            let accuracy = variant.exit(exit).map_or(0.0, |exit| exit.accuracy);
            for (class, is_up) in self.workers.classes() {
                let latency = self.catalog.latency(class.first(), id, exit, 1);
                let Some(latency) = latency.filter(|_| variant.memory_bytes <= class.memory_bytes)
                else {
                    continue;
                };
                let rank = (!is_up, accuracy < wanted, latency);
                if best.is_none_or(|(least, _)| rank < least) {
                    best = Some((rank, id));
                }
            }
        }
        best.map(|(_, variant)| HeldKey {
            variant,
            from_stage: 0,
            on: None,
        })
    }

    /// Of the workers that can run these requests, an idle one or the one that is free first.
    fn first_free(&mut self, now: Time, key: &HeldKey) -> Option<WorkerId> {
        if let Some(worker) = key.on {
            return self.can(worker, key).then_some(worker);
        }
        let memory = self.catalog.variant(key.variant)?.memory_bytes;
        self.workers.first_free(now, memory)
    }

    /// Whether a worker that is up can run these requests.
    pub(super) fn any_can(&self, key: &HeldKey) -> bool {
        let variant = self.catalog.variant(key.variant);
        match key.on {
            Some(worker) => self.can(worker, key),
            None => variant.is_some_and(|v| self.workers.any_up_with(v.memory_bytes)),
        }
    }

    pub(super) fn can(&self, worker: WorkerId, key: &HeldKey) -> bool {
        let spec = &self.catalog.workers[worker.index()];
        let variant = self.catalog.variant(key.variant);
        self.workers[worker].up
            && key.on.is_none_or(|on| on == worker)
            && variant.is_some_and(|variant| variant.memory_bytes <= spec.memory_bytes)
    }

    /// The next batch of a worker that has a place.
    pub(super) fn take_next(&mut self, now: Time, worker: WorkerId) -> Option<WorkerBatch> {
        // Mutable access only where something changes: it marks the worker as touched.
        if !self.workers[worker].alone.is_empty() {
            return self.workers[worker].alone.pop_front();
        }
        let held = &self.workers[worker];
        let may_hold = !self.held.is_empty();
        let policy_first =
            held.after_held && (held.could_start() || !self.table.pending().is_empty());
        if may_hold && !policy_first {
            let batch = self.batch_from_held(worker);
            if batch.is_some() {
                return batch;
            }
        }
        let queued = match self.workers[worker].queue.is_empty() {
            true => None,
            false => self.workers[worker].queue.pop_front(),
        };
        let next = queued.or_else(|| self.batch_from_lane(now, worker));
        if next.is_some() {
            self.workers[worker].after_held = false;
        } else if may_hold && self.held.first_for(|key| self.can(worker, key)).is_some() {
            self.yielding.push(worker);
        }
        next
    }

    /// Starts batches of the host on workers that the policy left idle in its turn; false when
    /// there are none.
    pub(super) fn start_held(&mut self, now: Time) -> bool {
        if self.yielding.is_empty() {
            return false;
        }
        let mut workers = std::mem::take(&mut self.yielding);
        // In the catalog's order, independent of the order of events.
        workers.sort_unstable();
        workers.dedup();
        let mut started = false;
        for worker in workers.drain(..) {
            let held = &self.workers[worker];
            if !held.up || !held.has_place() || held.could_start() {
                continue;
            }
            while let Some(batch) = self.batch_from_held(worker) {
                started = true;
                if let Some(batch) = self.keep_feasible(now, worker, batch) {
                    self.start(now, worker, batch);
                    break;
                }
            }
        }
        self.yielding = workers;
        started
    }

    fn batch_from_held(&mut self, worker: WorkerId) -> Option<WorkerBatch> {
        let key = self.held.first_for(|key| self.can(worker, key))?;
        let variant = self.catalog.variant(key.variant)?;
        let (to_stage, exit) = (variant.stages, variant.last_exit());
        let members = self.held.take(key, variant.max_batch);
        let mut batch = WorkerBatch {
            id: self.next_batch(),
            variant: key.variant,
            from_stage: key.from_stage,
            to_stage,
            exit: Some(exit),
            members,
            cost: Cost::ZERO,
            expected: Micros::ZERO,
            load: Micros::ZERO,
            decided: self.decided_by_host(),
            pinned: true,
            late: false,
        };
        self.predict(worker, &mut batch);
        self.workers[worker].after_held = true;
        Some(batch)
    }

    /// The variants of the next batches of a worker, those of the host last.
    pub(super) fn soon(&self, worker: WorkerId) -> Soon {
        let mut soon = self.workers[worker].soon();
        if !self.held.is_empty() {
            self.held.add_soon(worker, &mut soon);
        }
        soon
    }
}
