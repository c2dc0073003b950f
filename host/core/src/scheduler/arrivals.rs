//! Requests coming in and going away: admission, pinned and routed requests, evidence,
//! cancellation, expiry.

use super::Scheduler;
use crate::ids::{AppId, RequestId, VariantId, WorkerId};
use crate::request::{DroppedFrom, Evidence, Outcome, Rejection, Request};
use crate::table::{Entry, State};
use crate::time::{Micros, Time};
use crate::worker::{Batch, Members};

impl Scheduler {
    pub(super) fn handle_arrival(&mut self, now: Time, request: Request) {
        let (id, app, pinned) = (request.id, request.app, request.pinned);
        let drops_late = self.catalog.app(app).is_some_and(|app| app.drops_late);
        let waiting = self.table.pending().len();
        if !self.table.insert(request, drops_late) {
            // An id used twice: answering it again would break conservation.
            return;
        }
        self.ledger.accept();
        self.load.record(now, app);
        if self.draining {
            return self.reject(now, id, Rejection::Draining);
        }
        if !self.can_ever_run(app, pinned) {
            return self.reject(now, id, Rejection::NoWorker);
        }
        if waiting >= self.config.pending_max {
            return self.reject(now, id, Rejection::PendingFull);
        }
        if let Some(variant) = pinned {
            return self.place_pinned(now, id, variant);
        }
        if self.route(now, id, app) {
            return;
        }
        self.trigger.happened().arrival = true;
        self.rescue.happened().arrival = true;
    }

    fn can_ever_run(&self, app: AppId, pinned: Option<VariantId>) -> bool {
        self.catalog.variants_of(app).any(|(id, variant)| {
            pinned.is_none_or(|pinned| pinned == id)
                && self
                    .catalog
                    .workers
                    .iter()
                    .any(|worker| variant.memory_bytes <= worker.memory_bytes)
        })
    }

    /// A request whose client chose the variant: the host finds the worker that would
    /// finish it first, joining a batch of the same kind that waits there if it can.
    pub(super) fn place_pinned(&mut self, now: Time, id: RequestId, variant: VariantId) {
        let best = (0..self.workers.len())
            .filter(|&w| self.takes_pinned(w, variant))
            .min_by_key(|&w| (self.workers[w].free_at(now), w));
        let (Some(w), Some(found)) = (best, self.catalog.variant(variant)) else {
            return self.reject(now, id, Rejection::PendingFull);
        };
        let (max_batch, stages, exit) = (found.max_batch, found.stages, found.last_exit());
        let joins = |batch: &&mut Batch| {
            batch.pinned && batch.variant == variant && (batch.members.len() as u32) < max_batch
        };
        let batch_id = match self.workers[w].queue.back_mut().filter(joins) {
            Some(batch) => {
                batch.members.push(id);
                batch.id
            }
            None => {
                let batch = Batch {
                    id: self.next_batch(),
                    variant,
                    from_stage: 0,
                    to_stage: stages,
                    exit: Some(exit),
                    members: Members::from_slice(&[id]),
                    expected: Micros::ZERO,
                    decided: self.decided_by_host(),
                    pinned: true,
                };
                self.enqueue(w, u32::MAX, batch)
            }
        };
        self.table
            .set_state(id, State::Queued(WorkerId(w as u32), batch_id));
    }

    fn takes_pinned(&self, w: usize, variant: VariantId) -> bool {
        let (worker, spec) = (&self.workers[w], &self.catalog.workers[w]);
        let holds = self
            .catalog
            .variant(variant)
            .is_some_and(|v| v.memory_bytes <= spec.memory_bytes);
        worker.up && holds && (worker.queue.len() as u32) < spec.queue_max.max(1)
    }

    /// Draws the lane of an arrival, if its app is routed.
    fn route(&mut self, now: Time, id: RequestId, app: AppId) -> bool {
        let Some((worker, variant, exit)) = self.routes.draw(app, &mut self.random) else {
            return false;
        };
        let held = &mut self.workers[worker.index()];
        let lane = held
            .lanes
            .iter_mut()
            .find(|lane| lane.leads_to(variant, exit));
        let Some(lane) = lane.filter(|_| held.up) else {
            return false;
        };
        if lane.is_full() {
            self.reject(now, id, Rejection::LaneFull);
        } else {
            lane.waiting.push_back(id);
            self.may_start.push(worker.index());
            self.table.set_state(id, State::Lane(worker));
        }
        true
    }

    pub(super) fn handle_evidence(&mut self, id: RequestId, counts: Evidence) {
        let Some(entry) = self.table.get_mut(id) else {
            return;
        };
        let classes = self
            .catalog
            .app(entry.request.app)
            .map_or(0, |app| app.classes.len());
        if counts.len() != classes {
            return;
        }
        entry.evidence = Some(counts);
        if entry.state() == State::Pending {
            self.trigger.happened().evidence = true;
        }
    }

    pub(super) fn handle_cancelled(&mut self, now: Time, id: RequestId) {
        self.withdraw(id);
        self.end(now, id, Outcome::Cancelled, None);
    }

    /// Ends requests whose deadline has passed, in apps that drop. A running one is left
    /// alone: it is dropped between stages or answered late.
    pub(super) fn drop_expired(&mut self, now: Time) {
        while let Some(id) = self.table.pop_expired(now) {
            let Some(entry) = self.table.get(id) else {
                continue;
            };
            let from = match entry.state() {
                State::Running(..) => continue,
                State::Lane(_) | State::Queued(..) => DroppedFrom::Queue,
                State::Pending if entry.progress.is_some() => DroppedFrom::BetweenStages,
                State::Pending => DroppedFrom::Pending,
            };
            self.withdraw(id);
            self.end(now, id, Outcome::Dropped(from), None);
        }
    }

    /// Takes a request out of the lane or the waiting batch it is in.
    fn withdraw(&mut self, id: RequestId) {
        let Some(state) = self.table.get(id).map(Entry::state) else {
            return;
        };
        match state {
            State::Lane(worker) => {
                for lane in &mut self.workers[worker.index()].lanes {
                    lane.waiting.retain(|&waiting| waiting != id);
                }
            }
            State::Queued(worker, batch) => {
                let queue = &mut self.workers[worker.index()].queue;
                if let Some(held) = queue.iter_mut().find(|held| held.id == batch) {
                    held.members.retain(|member| *member != id);
                }
                queue.retain(|held| !held.members.is_empty());
            }
            State::Pending | State::Running(..) => {}
        }
    }
}
