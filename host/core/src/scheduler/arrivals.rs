//! Requests that come in and go away: admission, pins, routes, evidence, cancellation, expiry.

use super::Scheduler;
use crate::catalog::Late;
use crate::ids::{AppId, RequestId, VariantId};
use crate::request::{DroppedFrom, Evidence, Outcome, Rejection, Request};
use crate::table::RequestState;
use crate::time::Time;

impl Scheduler {
    pub(super) fn handle_arrival(&mut self, now: Time, request: Request) {
        let (id, app, pinned) = (request.id, request.app, request.pinned);
        let cost = request.cost;
        let late = self.catalog.app(app).map_or(Late::Serve, |app| app.late);
        let waiting = self.waiting();
        if !self.table.insert(request, late) {
            // The id was used before: a second reply would break conservation.
            return;
        }
        self.ledger.accept();
        if let Some(entry) = self.table.get(id) {
            self.guard.arrived(&entry.request);
        }
        self.load.record(now, app);
        self.costs.record(app, cost);
        if self.draining {
            return self.reject(now, id, Rejection::Draining);
        }
        if !self.can_ever_run(app, pinned) {
            return self.reject(now, id, Rejection::NoWorker);
        }
        if waiting + self.late.len() >= self.config.pending_max && !self.drop_latest(now) {
            return self.reject(now, id, Rejection::PendingFull);
        }
        if !self.admit(now, id) {
            return;
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
        let memory = self.capacity.memory_max();
        self.catalog.variants_of(app).any(|(id, variant)| {
            pinned.is_none_or(|pinned| pinned == id) && variant.memory_bytes <= memory
        })
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
            let deadline = self.table.get(id).map(|entry| entry.request.deadline);
            lane.push(id, deadline.unwrap_or(now));
            self.may_start.push(worker);
            self.table.set_state(id, RequestState::Lane(worker));
            self.watch_lane(worker, variant, exit);
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
                RequestState::Running(..) | RequestState::Late => continue,
                RequestState::Lane(_) | RequestState::Queued(..) => DroppedFrom::Queue,
                RequestState::Pending if entry.progress.is_some() => DroppedFrom::BetweenStages,
                RequestState::Pending | RequestState::Held => DroppedFrom::Pending,
            };
            self.withdraw(id);
            self.end(now, id, Outcome::Dropped(from), None);
        }
    }

    /// Takes a request out of its lane or waiting batch.
    pub(super) fn withdraw(&mut self, id: RequestId) {
        let entry = self.table.get(id);
        let Some((state, cost)) = entry.map(|entry| (entry.state(), entry.request.cost)) else {
            return;
        };
        match state {
            RequestState::Lane(worker) => {
                let mut lanes = self.workers[worker].lanes.iter_mut();
                let found = lanes.find_map(|lane| {
                    let at = lane.waiting.iter().position(|&waiting| waiting == id)?;
                    lane.waiting.remove(at);
                    Some((lane.variant, lane.exit))
                });
                // Fewer than `min_batch` may be left.
                if let Some((variant, exit)) = found {
                    self.watch_lane(worker, variant, exit);
                }
            }
            RequestState::Queued(worker, batch) => {
                let held = &mut self.workers[worker];
                for queue in [&mut held.alone, &mut held.queue] {
                    if let Some(held) = queue.iter_mut().find(|held| held.id == batch) {
                        held.remove(id, cost);
                    }
                    queue.retain(|held| !held.members.is_empty());
                }
            }
            RequestState::Late => {
                let deadline = self.table.get(id).map(|entry| entry.request.deadline);
                self.late.remove(&(deadline.unwrap_or_default(), id));
            }
            // `end` takes a held request out.
            RequestState::Pending | RequestState::Held | RequestState::Running(..) => {}
        }
    }

    /// Ends the request that has been late the longest, to make room. False: none is late.
    fn drop_latest(&mut self, now: Time) -> bool {
        let Some((_, id)) = self.late.pop_first() else {
            return false;
        };
        self.end(now, id, Outcome::Dropped(DroppedFrom::Pending), None);
        true
    }
}
