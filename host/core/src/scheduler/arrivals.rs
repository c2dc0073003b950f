//! Requests that come in and go away: admission, pins, routes, evidence, cancellation, expiry.

use super::Scheduler;
use crate::ids::{AppId, RequestId, VariantId, WorkerId};
use crate::request::{DroppedFrom, Evidence, Outcome, Rejection, Request};
use crate::table::{RequestEntry, RequestState};
use crate::time::{Micros, Time};
use crate::worker::{Members, WorkerBatch};

impl Scheduler {
    pub(super) fn handle_arrival(&mut self, now: Time, request: Request) {
        let (id, app, pinned) = (request.id, request.app, request.pinned);
        let drops_late = self.catalog.app(app).is_some_and(|app| app.drops_late);
        let waiting = self.table.pending().len();
        if !self.table.insert(request, drops_late) {
            // The id was used before: a second reply would break conservation.
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

    /// Queues a request whose client pinned the variant on the worker that is free first. It joins
    /// the last batch there if that one is pinned to the same variant and has room.
    pub(super) fn place_pinned(&mut self, now: Time, id: RequestId, variant: VariantId) {
        let able = self.workers.ids();
        let able = able.filter(|&worker| self.takes_pinned(worker, variant));
        let best = able.min_by_key(|&worker| (self.workers[worker].free_at(now), worker));
        let (Some(worker), Some(found)) = (best, self.catalog.variant(variant)) else {
            return self.strand(now, id, variant);
        };
        let (max_batch, stages, exit) = (found.max_batch, found.stages, found.last_exit());
        let joins = |batch: &&mut WorkerBatch| {
            batch.pinned && batch.variant == variant && (batch.members.len() as u32) < max_batch
        };
        let batch_id = match self.workers[worker].queue.back_mut().filter(joins) {
            Some(batch) => {
                batch.members.push(id);
                batch.id
            }
            None => {
                let batch = WorkerBatch {
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
                self.enqueue(worker, u32::MAX, batch)
            }
        };
        self.table
            .set_state(id, RequestState::Queued(worker, batch_id));
    }

    fn takes_pinned(&self, worker: WorkerId, variant: VariantId) -> bool {
        let (held, spec) = (&self.workers[worker], &self.catalog.workers[worker.index()]);
        let holds = self
            .catalog
            .variant(variant)
            .is_some_and(|v| v.memory_bytes <= spec.memory_bytes);
        held.up && holds && (held.queue.len() as u32) < spec.queue_max.max(1)
    }

    /// Draws the lane of an arrival. False when its app is not routed or the lane is closed.
    fn route(&mut self, now: Time, id: RequestId, app: AppId) -> bool {
        let Some((worker, variant, exit)) = self.routes.draw(app, &mut self.random) else {
            return false;
        };
        let held = &mut self.workers[worker];
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
            self.may_start.push(worker);
            self.table.set_state(id, RequestState::Lane(worker));
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
        if entry.state() == RequestState::Pending {
            self.trigger.happened().evidence = true;
        }
    }

    pub(super) fn handle_cancelled(&mut self, now: Time, id: RequestId) {
        self.withdraw(id);
        self.end(now, id, Outcome::Cancelled, None);
    }

    /// Ends the requests whose deadline has passed, in apps that drop late ones. A running request
    /// goes on: it is dropped between stages or answered late.
    pub(super) fn drop_expired(&mut self, now: Time) {
        while let Some(id) = self.table.pop_expired(now) {
            let Some(entry) = self.table.get(id) else {
                continue;
            };
            let from = match entry.state() {
                RequestState::Running(..) => continue,
                RequestState::Lane(_) | RequestState::Queued(..) | RequestState::Stranded => {
                    DroppedFrom::Queue
                }
                RequestState::Pending if entry.progress.is_some() => DroppedFrom::BetweenStages,
                RequestState::Pending => DroppedFrom::Pending,
            };
            self.withdraw(id);
            self.end(now, id, Outcome::Dropped(from), None);
        }
    }

    /// Takes a request out of its lane or waiting batch.
    pub(super) fn withdraw(&mut self, id: RequestId) {
        let Some(state) = self.table.get(id).map(RequestEntry::state) else {
            return;
        };
        match state {
            RequestState::Lane(worker) => {
                for lane in &mut self.workers[worker].lanes {
                    lane.waiting.retain(|&waiting| waiting != id);
                }
            }
            RequestState::Queued(worker, batch) => {
                let held = &mut self.workers[worker];
                for queue in [&mut held.alone, &mut held.queue] {
                    if let Some(held) = queue.iter_mut().find(|held| held.id == batch) {
                        held.members.retain(|member| *member != id);
                    }
                    queue.retain(|held| !held.members.is_empty());
                }
            }
            RequestState::Stranded => self.stranded = self.stranded.saturating_sub(1),
            RequestState::Pending | RequestState::Running(..) => {}
        }
    }
}
