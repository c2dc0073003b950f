//! Goodput whatever the policy: requests that cannot be answered in time make room for those that
//! can.
//!
//! These rules hold for apps with `late = "shed"` or `"last"`, all by profiled latencies times the
//! observed [slowdown](crate::estimate):
//! - an arrival is refused if the requests ahead of it leave no time for it;
//! - a pending request gives up once no variant can answer it in time on the worker that is free
//!   first; also, while enough other requests of its app have the time, once it would cut the app's
//!   batches short. Otherwise the oldest requests force ever smaller batches (the early drop of
//!   Nexus, SOSP 2019, section 6.3);
//! - rows that a batch would answer late leave it before it starts.
//!
//! An app that asks for more than its max-min fair share while others wait has a short queue, and
//! the host starts the requests of the others when their last chance comes.

use super::Scheduler;
use crate::capacity::EfficientBatch;
use crate::catalog::Late;
use crate::cost::Cost;
use crate::estimate::BatchSeries;
use crate::habit::Habit;
use crate::ids::{AppId, RequestId, WorkerId};
use crate::request::{DroppedFrom, Outcome};
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::worker::{Members, WorkerBatch};

/// The time that an app's next request takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppOutlook {
    /// When a worker is free, by the batches that run and are queued.
    pub(super) start: Time,
    /// A batch of one by the fastest variant.
    pub(super) fastest: Micros,
    /// The usual batch.
    pub(super) usual: Micros,
    /// The time that requests need for their batches not to be cut short.
    margin: Micros,
    /// Requests that give each worker that batch.
    pub(super) enough: usize,
}

impl Scheduler {
    /// Sets the time of an event or poll.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = now;
        let workers = || self.catalog.workers.iter().zip(self.workers.iter());
        self.estimates.forget_idle(now, |kind| {
            let of_kind = workers().filter(|(spec, _)| spec.kind == kind);
            let running = of_kind.filter_map(|(_, worker)| worker.running.as_ref());
            running.map(|running| running.since).min()
        });
    }

    /// Notes the batch that an app gets: the planned one, or the efficient one of its exit if that is
    /// larger.
    fn note_usual(&mut self, worker: WorkerId, batch: &WorkerBatch) {
        let (Some(spec), Some(variant)) = (
            self.catalog.worker(worker),
            self.catalog.variant(batch.variant),
        ) else {
            return;
        };
        let (kind, app) = (spec.kind, variant.app);
        let exit = batch.exit.unwrap_or(variant.last_exit());
        let Some(mut found) = self.capacity.efficient(kind, batch.variant, exit) else {
            return;
        };
        let size = batch.cost.ceil();
        if size > found.size {
            let latency = self.workers[worker].profiled(&self.catalog, worker, batch);
            found = EfficientBatch {
                kind,
                size,
                latency,
            };
        }
        if let Some(habit) = self.habits.get_mut(app.index()) {
            habit.planned(found);
        }
    }

    /// The time of a batch of one such request by the fastest variant.
    pub(super) fn fastest(&self, now: Time, app: AppId, cost: Cost) -> Option<Micros> {
        if cost > Cost::ONE {
            let (fastest, series) = self.capacity.fastest_of(&self.catalog, app, cost)?;
            return Some(self.estimates.of_series(now, series).of(fastest));
        }
        let (fastest, kind) = self.capacity.app(app).fastest?;
        Some(self.estimates.of_kind(now, kind).of(fastest))
    }

    pub(super) fn outlook(&mut self, now: Time, app: AppId) -> Option<AppOutlook> {
        let bounds = self.capacity.app(app);
        let (fastest, kind) = bounds.fastest?;
        let usual = self.usual_batch(app);
        let slowdown = |kind| self.estimates.of_kind(now, kind);
        let (fastest, usual_time) = (
            slowdown(kind).of(fastest),
            slowdown(usual.kind).of(usual.latency),
        );
        Some(AppOutlook {
            start: self.workers.earliest_free(now),
            fastest,
            usual: usual_time,
            margin: slowdown(usual.kind).of(self.habit(app).margin),
            enough: self.workers.expected() * usual.size as usize,
        })
    }

    /// Learns from a batch whether the oldest requests of its app come too late for it: rows left
    /// it, or the deadline of its first row kept it smaller than its exit's efficient batch.
    fn learn_margin(
        &mut self,
        now: Time,
        worker: WorkerId,
        (planned, planned_cost): (usize, Cost),
        batch: &WorkerBatch,
    ) {
        let Some(variant) = self.catalog.variant(batch.variant) else {
            return;
        };
        let (app, exit) = (variant.app, batch.exit.unwrap_or(variant.last_exit()));
        let (used, best) = ((batch.variant, exit), self.capacity.app(app).best);
        let is_of_policy = batch.decided.by == self.guard.label();
        let Some(habit) = self.habits.get_mut(app.index()) else {
            return;
        };
        if is_of_policy {
            habit.made(planned as u32, used);
        }
        let habit = *habit;
        let teaches = habit.teaches(used, (best.variant, best.exit));
        let needed = if !teaches || habit.adapts() && !self.is_past_capacity(now) {
            None
        } else if batch.members.len() < planned {
            self.profiled_of(worker, batch, planned_cost)
        } else {
            self.cut_short(now, worker, (app, habit.largest), batch)
        };
        if let Some(habit) = self.habits.get_mut(app.index()) {
            habit.needed(needed);
        }
    }

    /// The latency of the efficient batch, or of the largest that the policy makes, if the deadlines
    /// of a batch's rows kept it smaller.
    fn cut_short(
        &self,
        now: Time,
        worker: WorkerId,
        (app, largest): (AppId, u32),
        batch: &WorkerBatch,
    ) -> Option<Micros> {
        let kind = self.catalog.worker(worker)?.kind;
        let exit = batch.exit?;
        let efficient = self.capacity.efficient(kind, batch.variant, exit)?;
        let size = batch.members.len() as u32;
        let waiting = self.table.guarded(app)?.len();
        let wanted = efficient.size.min(largest);
        if size >= wanted || waiting == 0 {
            return None;
        }
        let larger = self.time_of(now, worker, batch, batch.cost + Cost::ONE)?;
        let deadlines = batch.members.iter().filter_map(|&id| self.table.get(id));
        let first = deadlines.map(|entry| entry.request.deadline).min()?;
        let is_cut = self.workers[worker].busy_until(now) + larger > first;
        is_cut.then(|| self.profiled_of(worker, batch, Cost::rows(wanted as usize)))?
    }

    fn profiled_of(&self, worker: WorkerId, batch: &WorkerBatch, cost: Cost) -> Option<Micros> {
        let kind = self.catalog.worker(worker)?.kind;
        self.catalog.profile.latency_of(
            kind,
            batch.variant,
            batch.from_stage,
            batch.to_stage,
            batch.exit,
            cost,
        )
    }

    pub(super) fn usual_batch(&self, app: AppId) -> EfficientBatch {
        let usual = self.habit(app).usual;
        match usual.size {
            0 => self.capacity.app(app).best.batch,
            _ => usual,
        }
    }

    pub(super) fn habit(&self, app: AppId) -> Habit {
        self.habits.get(app.index()).copied().unwrap_or_default()
    }

    // ---- pending requests -------------------------------------------------------------

    /// Takes the hopeless requests out of the way.
    pub(super) fn shed(&mut self, now: Time) {
        for app in self.catalog.app_ids() {
            if self.table.guarded(app).is_none() {
                continue;
            }
            let Some(outlook) = self.outlook(now, app) else {
                continue;
            };
            self.save_from_flood(now, app, outlook);
            let hopeless_before = self.hopeless_before(app, outlook);
            while let Some(id) = self.first_before(app, hopeless_before) {
                self.give_up(now, id);
            }
        }
    }

    /// While another app floods, the host starts the requests whose last chance is the next batch.
    fn save_from_flood(&mut self, now: Time, app: AppId, outlook: AppOutlook) {
        let Some(flood) = self.flood.filter(|flood| now < flood.until) else {
            return;
        };
        let last_chance = outlook.start + flood.batch + outlook.fastest;
        while flood.app != app
            && let Some(id) = self.first_before(app, last_chance)
            && self.first_before(app, outlook.start + outlook.fastest) != Some(id)
        {
            if !self.take_over(now, id) {
                return;
            }
        }
    }

    /// The deadline from which on an app's requests keep their place.
    fn hopeless_before(&self, app: AppId, outlook: AppOutlook) -> Time {
        let by_fastest = outlook.start + outlook.fastest;
        let by_margin = outlook.start + outlook.margin;
        let Some(waiting) = self.table.guarded(app) else {
            return by_fastest;
        };
        let is_stale = waiting.first().is_some_and(|(first, _)| first < by_margin);
        // While a worker is idle, the policy or the fallback can start the oldest at once.
        if !is_stale || waiting.len() <= outlook.enough || self.workers.any_idle() {
            return by_fastest;
        }
        // Batches can be filled with requests that have the time.
        let fresh = waiting.nth_last(outlook.enough.saturating_sub(1));
        match fresh.is_some_and(|(deadline, _)| deadline >= by_margin) {
            true => by_margin.max(by_fastest),
            false => by_fastest,
        }
    }

    fn first_before(&self, app: AppId, bound: Time) -> Option<RequestId> {
        let (deadline, id) = self.table.guarded(app)?.first()?;
        (deadline < bound).then_some(id)
    }

    /// When the first pending request becomes hopeless even on an idle worker.
    pub(super) fn next_hopeless(&self, now: Time) -> Option<Time> {
        let apps = self.catalog.app_ids();
        let moments = apps.filter_map(|app| {
            let (deadline, _) = self.table.guarded(app)?.first()?;
            let (fastest, kind) = self.capacity.app(app).fastest?;
            let fastest = self.estimates.of_kind(now, kind).of(fastest);
            Some(deadline - fastest + Micros(1))
        });
        moments.min()
    }

    /// Ends a request that cannot be answered in time, or keeps it for when nothing else waits.
    pub(super) fn give_up(&mut self, now: Time, id: RequestId) {
        let Some(entry) = self.table.get(id) else {
            return;
        };
        let from = match entry.state() {
            RequestState::Lane(_) | RequestState::Queued(..) => DroppedFrom::Queue,
            _ if entry.progress.is_some() => DroppedFrom::BetweenStages,
            _ => DroppedFrom::Pending,
        };
        let keeps = entry.late() == Late::Last && entry.progress.is_none();
        if keeps {
            let is_pinned = entry.request.pinned.is_some();
            self.late_pins = is_pinned || self.late_pins && !self.late.is_empty();
            self.late.insert((entry.request.deadline, id));
            self.table.set_state(id, RequestState::Late);
        } else {
            self.end(now, id, Outcome::Dropped(from), None);
        }
    }

    // ---- batches ----------------------------------------------------------------------

    /// Takes the rows out of a batch that it would answer late. The rest is the largest batch that
    /// answers all its rows in time; none: no row is left.
    pub(super) fn keep_feasible(
        &mut self,
        now: Time,
        worker: WorkerId,
        batch: WorkerBatch,
    ) -> Option<WorkerBatch> {
        let app = self.catalog.variant(batch.variant)?.app;
        let is_guarded = self.catalog.app(app)?.late.is_guarded();
        if !is_guarded || batch.late {
            return Some(batch);
        }
        let is_usual = batch.from_stage == 0 && !batch.pinned && batch.is_usual();
        if is_usual {
            self.note_usual(worker, &batch);
        }
        let planned = (batch.members.len(), batch.cost);
        let kept = self.without_late_rows(now, worker, batch);
        match &kept {
            Some(batch) if is_usual => self.learn_margin(now, worker, planned, batch),
            Some(_) => {}
            None => self.note_unstarted(now),
        }
        kept
    }

    fn without_late_rows(
        &mut self,
        now: Time,
        worker: WorkerId,
        mut batch: WorkerBatch,
    ) -> Option<WorkerBatch> {
        let begins = self.workers[worker].busy_until(now);
        let is_in_time = |cost: Cost, deadline: Time, batch: &WorkerBatch| {
            let time = self.time_of(now, worker, batch, cost);
            time.is_none_or(|time| begins + time <= deadline)
        };
        let first = self.row_deadlines(&batch).map(|(at, _)| at).min()?;
        if is_in_time(batch.cost, first, &batch) {
            return Some(batch);
        }
        let mut rows: Vec<_> = self.row_deadlines(&batch).collect();
        // Latest deadline first: a prefix of k rows is the best batch of k.
        rows.sort_by(|a, b| b.cmp(a));
        let costs = rows.iter().scan(Cost::ZERO, |sum, &(_, id)| {
            *sum = *sum + self.table.cost(id);
            Some(*sum)
        });
        let costs: Vec<Cost> = costs.collect();
        let fits = |&k: &usize| is_in_time(costs[k - 1], rows[k - 1].0, &batch);
        let kept = (1..=rows.len()).rev().find(fits).unwrap_or(0);
        let leaving: Members = rows[kept..].iter().map(|&(_, id)| id).collect();
        batch.members.retain(|id| !leaving.contains(id));
        batch.cost = kept.checked_sub(1).map_or(Cost::ZERO, |last| costs[last]);
        for id in leaving {
            self.leave(now, id, batch.pinned);
        }
        if batch.members.is_empty() {
            return None;
        }
        if let Some(time) = self.time_of(now, worker, &batch, batch.cost) {
            batch.expected = time;
        }
        Some(batch)
    }

    /// The deadlines of a batch's rows. Probes run at any time.
    fn row_deadlines(&self, batch: &WorkerBatch) -> impl Iterator<Item = (Time, RequestId)> {
        batch.members.iter().map(|&id| {
            let guarded = self.table.get(id).filter(|entry| !entry.probe);
            let deadline = guarded.map_or(Time::NEVER, |entry| entry.request.deadline);
            (deadline, id)
        })
    }

    /// Whether the host guards a request that will be late if its batch begins then and takes this time.
    pub(super) fn is_late_after(&self, begins: Time, id: RequestId, time: Option<Micros>) -> bool {
        let Some((entry, time)) = self.table.get(id).zip(time) else {
            return false;
        };
        entry.late().is_guarded() && !entry.probe && begins + time > entry.request.deadline
    }

    /// The time of a batch if its requests cost this much.
    pub(super) fn time_of(
        &self,
        now: Time,
        worker: WorkerId,
        batch: &WorkerBatch,
        cost: Cost,
    ) -> Option<Micros> {
        let kind = self.catalog.worker(worker)?.kind;
        let series = BatchSeries {
            size: cost.ceil(),
            ..batch.series(kind)
        };
        let profiled = self.profiled_of(worker, batch, cost)?;
        Some(self.estimates.of_series(now, series).of(profiled) + batch.load)
    }

    /// A row leaves its batch: for another one if a variant may still answer it in time.
    fn leave(&mut self, now: Time, id: RequestId, pinned: bool) {
        let Some(entry) = self.table.get_mut(id) else {
            return;
        };
        let may_return = !pinned && !entry.left_batch && entry.progress.is_none();
        entry.left_batch = true;
        let (app, deadline) = (entry.request.app, entry.request.deadline);
        let cost = entry.request.cost;
        let fastest = self.fastest(now, app, cost);
        let in_time = fastest.is_some_and(|fastest| now + fastest <= deadline);
        match may_return && in_time {
            true => self.set_pending(id),
            false => self.give_up(now, id),
        }
    }
}
