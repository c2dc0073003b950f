//! Requests that a policy neglects: left to wait for ever, overtaken for ever, rejected although
//! a worker is idle.

use super::Scheduler;
use crate::catalog::Catalog;
use crate::cost::Cost;
use crate::ids::{ExitId, RequestId, VariantId, WorkerId};
use crate::plan::Plan;
use crate::request::Request;
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::window::Causes;
use crate::worker::WorkerBatch;

/// Batches that may overtake a request which waits `patience` past its deadline. Then the host
/// starts it, so such requests take at most one of 33 batches from a policy that puts others
/// first, as it may in overload.
pub const OVERTAKEN_MAX: u32 = 32;

/// Rejected requests of one plan that are compared with the idle workers: it bounds the time that
/// the comparison takes.
pub const REJECTS_LOOKED_AT: usize = 64;

/// Before a guarded request is lost, the fallback gets this much more time than its fastest variant
/// needs: a driver's timer may be late.
const RESCUE_MARGIN: Micros = Micros(2_000);

impl Scheduler {
    /// When the fallback serves the first guarded request of each app that the policy would let be lost
    /// although an idle worker can hold a variant for it. Only the times that `matter`.
    fn almost_lost(
        &self,
        now: Time,
        matter: impl Fn(Time) -> bool,
    ) -> impl Iterator<Item = (Time, RequestId)> {
        let is_watched = self.guard.has_policy() && self.workers.any_idle();
        let apps = self.catalog.app_ids().filter(move |_| is_watched);
        apps.filter_map(move |app| {
            let (deadline, id) = self.table.guarded(app)?.first()?;
            let request = &self.table.get(id)?.request;
            let fastest = self.fastest(now, app, request.cost)?;
            let arrival = request.arrival;
            // The policy may use the first half of the time in any case.
            let half = arrival + Micros(deadline.since(arrival).0 / 2);
            let at = half.max(deadline - fastest - RESCUE_MARGIN);
            let least = self.capacity.app(app).least_memory_bytes;
            (matter(at) && self.workers.any_idle_with(least)).then_some((at, id))
        })
    }

    /// When the fallback next serves requests that would be lost. Those that it left the last time do not
    /// hide later ones.
    pub(super) fn next_almost_lost(&self) -> Option<Time> {
        let lost = self.almost_lost(self.now, |at| at > self.saved);
        lost.map(|(at, _)| at).min()
    }

    /// Serves requests that would be lost; false when there is none.
    fn save_almost_lost(&mut self, now: Time) -> bool {
        if self.saved >= now && now > Time::ZERO {
            return false;
        }
        let Some((_, id)) = self.almost_lost(now, |at| at <= now).min() else {
            return false;
        };
        self.saved = now;
        self.charge(now, id);
        self.run_window(now, Causes::default(), true);
        true
    }

    /// Not later than the time at which the pending request with the earliest deadline will have
    /// waited too long although a worker is idle, if a policy is in charge.
    pub(super) fn starving_at(&self) -> Option<Time> {
        let pending = self.table.pending();
        let neglected = !pending.is_empty() && self.guard.has_policy() && self.workers.any_idle();
        let due = pending.due_from().max(self.relieved);
        neglected.then(|| due + self.config.patience + Micros(1))
    }

    /// All rows of a batch left it before its start, so another window is due: its worker may be
    /// idle. A starving request that was to be served by it delays no other one.
    pub(super) fn note_unstarted(&mut self, now: Time) {
        self.trigger.note_unstarted();
        self.rescue.note_unstarted();
        if self.relieved == now {
            self.relieved = Time::ZERO;
        }
    }

    /// Charges the policy with a starving request, once in `patience`.
    fn charge(&mut self, now: Time, id: RequestId) {
        if now > self.charged + self.config.patience {
            self.charged = now;
            let starved = self.guard.starved(now, self.windows_opened, id);
            self.faulted.extend(starved);
        }
    }

    /// The pending request with the earliest deadline, if that was `patience` ago.
    fn overdue(&mut self, now: Time) -> Option<(Time, RequestId)> {
        let patience = self.config.patience;
        let pending = self.table.pending_mut();
        // Mostly decided by the bound, without looking at the requests.
        if now <= pending.due_from() + patience {
            return None;
        }
        let first = pending.first_due();
        first.filter(|&(deadline, _)| now > deadline + patience)
    }

    /// Counts a batch that overtakes the pending request with the earliest deadline: all of its
    /// requests came later and have later deadlines. Neither first come, first served nor earliest
    /// deadline first do that, whatever the load.
    pub(super) fn note_overtaking(&mut self, now: Time, batch: &WorkerBatch) {
        let Some((deadline, id)) = self.overdue(now) else {
            return;
        };
        let is_later = |&member: &RequestId| {
            let entry = self.table.get(member);
            member > id && entry.is_some_and(|entry| entry.request.deadline > deadline)
        };
        if batch.members.iter().all(is_later) {
            let before = match self.overtaken {
                (overtaken, count) if overtaken == id => count,
                _ => 0,
            };
            self.overtaken = (id, before + 1);
        }
    }

    /// Serves a starving request; false when none starves.
    pub(super) fn relieve(&mut self, now: Time) -> bool {
        if self.save_almost_lost(now) {
            return true;
        }
        let Some((_, id)) = self.overdue(now) else {
            return false;
        };
        if self.overtaken.0 == id && self.overtaken.1 >= OVERTAKEN_MAX {
            self.overtaken.1 = 0;
            return self.take_over(now, id);
        }
        if self.starving_at().is_none_or(|at| now < at) {
            return false;
        }
        self.relieved = now;
        let is_neglected = self.yielding.is_empty() && self.has_idle_worker_for(id);
        if is_neglected {
            self.charge(now, id);
            self.run_window(now, Causes::default(), true);
        }
        // The fallback may put requests first that are still in time.
        let entry = self.table.get(id);
        let is_left = entry.is_some_and(|entry| entry.state() == RequestState::Pending);
        is_left && self.take_over(now, id) || is_neglected
    }

    fn has_idle_worker_for(&mut self, id: RequestId) -> bool {
        let Some(entry) = self.table.get(id) else {
            return false;
        };
        let mut idle = self.workers.idle();
        idle.any(|worker| match entry.progress {
            Some(progress) => progress.worker == worker,
            None => variants_on(&self.catalog, worker, &entry.request).count() > 0,
        })
    }

    /// Whether a plan only rejects, all that is pending, although an idle worker could answer one
    /// of these requests in time.
    pub(super) fn rejects_in_vain(&mut self, now: Time, shown: usize, plan: &Plan) -> bool {
        let rejects_only = !plan.rejects.is_empty()
            && plan.dispatches.is_empty()
            && plan.answers.is_empty()
            && plan.routes.is_empty();
        let all = plan.rejects.len() >= shown;
        if !rejects_only || !all || !self.workers.any_idle() {
            return false;
        }
        let idle: Vec<WorkerId> = self.workers.idle().collect();
        let rejects = plan.rejects.iter().take(REJECTS_LOOKED_AT);
        let mut rejects = rejects.filter_map(|&id| self.table.get(id));
        rejects.any(|entry| {
            let is_fresh = entry.progress.is_none();
            let mut idle = idle.iter();
            is_fresh && idle.any(|&id| self.is_in_time_on(now, id, &entry.request))
        })
    }

    /// A batch of this request alone would end by its deadline, as accurate as its client asked.
    fn is_in_time_on(&self, now: Time, id: WorkerId, request: &Request) -> bool {
        let worker = &self.workers[id];
        let kind = self.catalog.workers[id.index()].kind;
        let profile = &self.catalog.profile;
        variants_on(&self.catalog, id, request).any(|variant| {
            let load = match worker.resident.contains(&variant) {
                true => Micros::ZERO,
                false => profile.load_time(kind, variant),
            };
            let exits = self.catalog.variant(variant).map(|found| &found.exits);
            let exits = (0..).map(ExitId).zip(exits.into_iter().flatten());
            let mut accurate =
                exits.filter(|(_, exit)| exit.accuracy >= f64::from(request.min_accuracy));
            accurate.any(|(exit, _)| {
                let cost = request.cost.max(Cost::ONE);
                let latency = self.catalog.latency_of(id, variant, exit, cost);
                latency.is_some_and(|latency| now + load + latency <= request.deadline)
            })
        })
    }
}

/// The variants of a request's app that a worker can hold.
fn variants_on(
    catalog: &Catalog,
    worker: WorkerId,
    request: &Request,
) -> impl Iterator<Item = VariantId> {
    let memory = catalog.workers[worker.index()].memory_bytes;
    let variants = catalog.variants_of(request.app);
    let held = variants.filter(move |(_, variant)| variant.memory_bytes <= memory);
    held.map(|(id, _)| id)
}
