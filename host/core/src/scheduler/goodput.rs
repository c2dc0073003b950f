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
use crate::estimate::BatchSeries;
use crate::flood::{Flood, fair_level};
use crate::habit::Habit;
use crate::ids::{AppId, ExitId, KindId, RequestId, VariantId, WorkerId};
use crate::load::LOAD_WINDOW;
use crate::request::{DroppedFrom, Outcome, Rejection};
use crate::table::{RequestEntry, RequestState};
use crate::time::{Micros, Time};
use crate::worker::{Members, WorkerBatch};

/// While all requests of an idle pool look hopeless, one in this time is served all the same: the
/// profile may be too slow, and only a batch can show that.
const PROBE_EVERY: Micros = Micros::from_millis(1_000);

/// The time that an app's next request takes.
#[derive(Clone, Copy, Debug)]
struct AppOutlook {
    /// When a worker is free, by the batches that run and are queued.
    start: Time,
    /// A batch of one by the fastest variant.
    fastest: Micros,
    /// The usual batch.
    usual: Micros,
    /// The time that requests need for their batches not to be cut short.
    margin: Micros,
    /// Requests that give each worker that batch.
    enough: usize,
}

impl Scheduler {
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
        let size = batch.members.len() as u32;
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

    fn outlook(&mut self, now: Time, app: AppId) -> Option<AppOutlook> {
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
            enough: self.workers.up() * usual.size as usize,
        })
    }

    /// Learns from a batch whether the oldest requests of its app come too late for it: rows left
    /// it, or the deadline of its first row kept it smaller than its exit's efficient batch.
    fn learn_margin(&mut self, now: Time, worker: WorkerId, planned: u32, batch: &WorkerBatch) {
        let Some(variant) = self.catalog.variant(batch.variant) else {
            return;
        };
        let (app, exit) = (variant.app, batch.exit.unwrap_or(variant.last_exit()));
        let (used, best) = ((batch.variant, exit), self.capacity.app(app));
        let is_of_policy = batch.decided.by == self.guard.label();
        let Some(habit) = self.habits.get_mut(app.index()) else {
            return;
        };
        if is_of_policy {
            habit.made(planned, used);
        }
        let habit = *habit;
        let teaches = habit.teaches(used, (best.best_variant, best.best_exit));
        let size = batch.members.len() as u32;
        let needed = if !teaches || habit.adapts() && !self.is_past_capacity(now) {
            None
        } else if size < planned {
            self.profiled_of(worker, batch, planned)
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
        let larger = self.time_of(now, worker, batch, size + 1)?;
        let deadlines = batch.members.iter().filter_map(|&id| self.table.get(id));
        let first = deadlines.map(|entry| entry.request.deadline).min()?;
        let is_cut = now + larger > first;
        is_cut.then(|| self.profiled_of(worker, batch, wanted))?
    }

    fn profiled_of(&self, worker: WorkerId, batch: &WorkerBatch, size: u32) -> Option<Micros> {
        let kind = self.catalog.worker(worker)?.kind;
        self.catalog.profile.latency(
            kind,
            batch.variant,
            batch.from_stage,
            batch.to_stage,
            batch.exit,
            size,
        )
    }

    fn usual_batch(&self, app: AppId) -> EfficientBatch {
        let usual = self.habit(app).usual;
        match usual.size {
            0 => self.capacity.app(app).best,
            _ => usual,
        }
    }

    fn habit(&self, app: AppId) -> Habit {
        self.habits.get(app.index()).copied().unwrap_or_default()
    }

    // ---- arrivals ---------------------------------------------------------------------

    /// Lets a request in that can be answered in time. False: it has ended, or waits until nothing
    /// else does.
    pub(super) fn admit(&mut self, now: Time, id: RequestId) -> bool {
        let why = match self.hindrance(now, id) {
            None => return true,
            Some(why) => why,
        };
        match self.table.get(id).map(RequestEntry::late) {
            Some(Late::Last) => self.give_up(now, id),
            _ => self.reject(now, id, why),
        }
        false
    }

    /// Why a request that has just come cannot be answered in time.
    fn hindrance(&mut self, now: Time, id: RequestId) -> Option<Rejection> {
        let entry = self.table.get(id)?;
        if !entry.late().is_guarded() {
            return None;
        }
        let request = &entry.request;
        let (app, deadline, pinned) = (request.app, request.deadline, request.pinned);
        let mut outlook = self.outlook(now, app)?;
        if let Some(variant) = pinned {
            outlook.fastest = self.fastest_of(now, variant).unwrap_or(outlook.fastest);
        }
        if now + outlook.fastest > deadline {
            let is_probe = self.probes(now, id);
            return (!is_probe).then_some(Rejection::DeadlineTooShort);
        }
        if pinned.is_some() {
            return None;
        }
        let waiting = self.table.guarded(app).map_or(0, |waiting| waiting.len());
        let cap = 2 * outlook.enough.max(1);
        if waiting > cap && self.is_flooding(now, app) {
            self.flood = Some(Flood {
                app,
                until: now + LOAD_WINDOW,
                batch: outlook.usual,
            });
            return Some(Rejection::Overloaded);
        }
        let last_start = Micros(
            deadline
                .0
                .saturating_sub(outlook.fastest.0 + outlook.start.0),
        );
        let places = self.served_within(now, app, last_start);
        let ahead = self.table.guarded(app).map_or(0, |waiting| {
            match waiting.len() as u64 > places {
                // Only requests with an earlier deadline are ahead.
                true => waiting
                    .range(..(deadline, id))
                    .take(places as usize + 1)
                    .count(),
                false => 0,
            }
        });
        (ahead as u64 > places).then_some(Rejection::Overloaded)
    }

    /// The most requests of an app that all workers together serve in this time.
    fn served_within(&self, now: Time, app: AppId, time: Micros) -> u64 {
        let best = self.capacity.app(app).best;
        let latency = self.estimates.of_kind(now, best.kind).of(best.latency);
        let workers = self.workers.up() as u64;
        let served = u128::from(time.0) * u128::from(workers) * u128::from(best.size);
        let served = served / u128::from(latency.0.max(1));
        u64::try_from(served).unwrap_or(u64::MAX)
    }

    fn fastest_of(&self, now: Time, variant: VariantId) -> Option<Micros> {
        let exit = self.catalog.variant(variant)?.last_exit();
        let workers = (0..).map(WorkerId).zip(&self.catalog.workers);
        let latencies = workers.filter_map(|(worker, spec)| {
            let latency = self.catalog.latency(worker, variant, exit, 1)?;
            Some(self.estimates.of_kind(now, spec.kind).of(latency))
        });
        latencies.min()
    }

    fn probes(&mut self, now: Time, id: RequestId) -> bool {
        let is_alone = self.table.pending().len() <= 1 && self.workers.any_idle();
        if !is_alone || now < self.next_probe {
            return false;
        }
        self.next_probe = now + PROBE_EVERY;
        if let Some(entry) = self.table.get_mut(id) {
            entry.probe = true;
        }
        self.table.set_state(id, RequestState::Pending);
        true
    }

    /// Whether the apps together ask for more than the workers can do with the fastest variants.
    fn is_past_capacity(&mut self, now: Time) -> bool {
        let capacity = self.workers.up() as f64;
        let rates: Vec<f64> = self.load.rates(now).collect();
        let demands = (0..).zip(rates).map(|(a, rate)| {
            let best = self.capacity.app(AppId(a)).best;
            self.demand(now, rate, best)
        });
        demands.sum::<f64>() > capacity
    }

    /// The workers that requests at this rate keep busy, in these batches.
    fn demand(&self, now: Time, rate: f64, batch: EfficientBatch) -> f64 {
        let latency = self.estimates.of_kind(now, batch.kind).of(batch.latency);
        rate * latency.as_secs_f64() / f64::from(batch.size.max(1))
    }

    /// Whether an app asks for more than its max-min fair share of the workers. A policy that adapts
    /// may turn to the fastest variants when queues grow, so their rates count for its apps.
    fn is_flooding(&mut self, now: Time, app: AppId) -> bool {
        let capacity = self.workers.up() as f64;
        let rates: Vec<f64> = self.load.rates(now).collect();
        let demand = |(a, rate): (u32, f64)| {
            let batch = match self.habit(AppId(a)).adapts() {
                true => self.capacity.app(AppId(a)).best,
                false => self.usual_batch(AppId(a)),
            };
            self.demand(now, rate, batch)
        };
        let demands: Vec<f64> = (0..).zip(rates).map(demand).collect();
        demands.get(app.index()).copied().unwrap_or(0.0) > fair_level(&demands, capacity)
    }

    // ---- pending requests -------------------------------------------------------------

    /// Takes the hopeless requests out of the way.
    pub(super) fn shed(&mut self, now: Time) {
        for app in (0..self.catalog.apps.len() as u32).map(AppId) {
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
        let is_stale = waiting.first().is_some_and(|&(first, _)| first < by_margin);
        // While a worker is idle, the policy or the fallback can start the oldest at once.
        if !is_stale || waiting.len() <= outlook.enough || self.workers.any_idle() {
            return by_fastest;
        }
        // Batches can be filled with requests that have the time.
        let fresh = waiting.iter().rev().nth(outlook.enough.saturating_sub(1));
        match fresh.is_some_and(|&(deadline, _)| deadline >= by_margin) {
            true => by_margin.max(by_fastest),
            false => by_fastest,
        }
    }

    fn first_before(&self, app: AppId, bound: Time) -> Option<RequestId> {
        let &(deadline, id) = self.table.guarded(app)?.first()?;
        (deadline < bound).then_some(id)
    }

    /// When the first pending request becomes hopeless even on an idle worker.
    pub(super) fn next_hopeless(&self, now: Time) -> Option<Time> {
        let apps = (0..self.catalog.apps.len() as u32).map(AppId);
        let moments = apps.filter_map(|app| {
            let &(deadline, _) = self.table.guarded(app)?.first()?;
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
        if batch.from_stage > 0 || batch.pinned {
            return self.without_late_rows(now, worker, batch);
        }
        self.note_usual(worker, &batch);
        let planned = batch.members.len() as u32;
        let kept = self.without_late_rows(now, worker, batch);
        if let Some(batch) = &kept {
            self.learn_margin(now, worker, planned, batch);
        }
        kept
    }

    fn without_late_rows(
        &mut self,
        now: Time,
        worker: WorkerId,
        mut batch: WorkerBatch,
    ) -> Option<WorkerBatch> {
        let mut rows = self.deadlines(&batch);
        let is_in_time = |size: usize, deadline: Time, batch: &WorkerBatch| {
            let time = self.time_of(now, worker, batch, size as u32);
            time.is_none_or(|time| now + time <= deadline)
        };
        let first = rows.iter().map(|&(deadline, _)| deadline).min()?;
        if is_in_time(rows.len(), first, &batch) {
            return Some(batch);
        }
        // Latest deadline first: a prefix of k rows is the best batch of k.
        rows.sort_by(|a, b| b.cmp(a));
        let fits = |&k: &usize| is_in_time(k, rows[k - 1].0, &batch);
        let kept = (1..=rows.len()).rev().find(fits).unwrap_or(0);
        let leaving: Members = rows[kept..].iter().map(|&(_, id)| id).collect();
        batch.members.retain(|id| !leaving.contains(id));
        for id in leaving {
            self.leave(now, id, batch.pinned);
        }
        if batch.members.is_empty() {
            return None;
        }
        let size = batch.members.len() as u32;
        if let Some(time) = self.time_of(now, worker, &batch, size) {
            batch.expected = time;
        }
        Some(batch)
    }

    /// The deadlines of a batch's rows. Probes run at any time.
    fn deadlines(&self, batch: &WorkerBatch) -> Vec<(Time, RequestId)> {
        let rows = batch.members.iter().map(|&id| {
            let entry = self.table.get(id);
            let deadline = match entry {
                Some(entry) if !entry.probe => entry.request.deadline,
                _ => Time::NEVER,
            };
            (deadline, id)
        });
        rows.collect()
    }

    /// Whether the host guards a request that will be late if its batch takes this time.
    pub(super) fn is_late_after(&self, now: Time, id: RequestId, time: Option<Micros>) -> bool {
        let Some((entry, time)) = self.table.get(id).zip(time) else {
            return false;
        };
        entry.late().is_guarded() && !entry.probe && now + time > entry.request.deadline
    }

    /// The time of a batch if it had this size.
    pub(super) fn time_of(
        &self,
        now: Time,
        worker: WorkerId,
        batch: &WorkerBatch,
        size: u32,
    ) -> Option<Micros> {
        let kind = self.catalog.worker(worker)?.kind;
        let series = BatchSeries {
            size,
            ..batch.series(kind)
        };
        let compute = self.catalog.profile.latency(
            kind,
            batch.variant,
            batch.from_stage,
            batch.to_stage,
            batch.exit,
            size,
        )?;
        Some(self.estimates.of_series(now, series).of(compute) + batch.load)
    }

    /// A row leaves its batch: for another one if a variant may still answer it in time.
    fn leave(&mut self, now: Time, id: RequestId, pinned: bool) {
        let Some(entry) = self.table.get_mut(id) else {
            return;
        };
        let may_return = !pinned && !entry.left_batch && entry.progress.is_none();
        entry.left_batch = true;
        let (app, deadline) = (entry.request.app, entry.request.deadline);
        let fastest = self.capacity.app(app).fastest;
        let in_time = fastest.is_some_and(|(fastest, kind)| {
            now + self.estimates.of_kind(now, kind).of(fastest) <= deadline
        });
        match may_return && in_time {
            true => self.set_pending(id),
            false => self.give_up(now, id),
        }
    }

    // ---- served last ------------------------------------------------------------------

    /// Gives an idle worker a batch of requests that will be late, if nothing else waits, or if the
    /// policy leaves the worker idle although they have waited for `patience`. False: there is no
    /// such worker or request.
    pub(super) fn serve_late(&mut self, now: Time) -> bool {
        let is_due = self.late_due().is_some_and(|at| at <= now);
        if self.late.is_empty() || !is_due && !self.table.pending().is_empty() {
            return false;
        }
        let Some(worker) = self.workers.ids().find(|&w| self.workers[w].is_idle()) else {
            return false;
        };
        let Some(batch) = self.late_batch(worker) else {
            return false;
        };
        self.start(now, worker, batch);
        true
    }

    /// When a late request is served although others are pending, if a worker is idle.
    pub(super) fn late_due(&self) -> Option<Time> {
        let &(deadline, _) = self.late.first()?;
        let due = deadline + self.config.patience + Micros(1);
        self.workers.any_idle().then_some(due)
    }

    /// The oldest late requests of one app, in the batch with the largest rate.
    fn late_batch(&mut self, worker: WorkerId) -> Option<WorkerBatch> {
        let spec = self.catalog.worker(worker)?;
        let (kind, memory) = (spec.kind, spec.memory_bytes);
        let app_of = |id| self.table.get(id).map(|entry| entry.request.app);
        let (app, (variant, exit)) = self.late.iter().find_map(|&(_, id)| {
            let app = app_of(id)?;
            Some((app, self.best_on(app, kind, memory)?))
        })?;
        let found = self.catalog.variant(variant)?;
        let to_stage = found.exit(exit)?.after_stage;
        let size = self.capacity.efficient(kind, variant, exit)?.size as usize;
        let of_app = self.late.iter().filter(|&&(_, id)| app_of(id) == Some(app));
        let rows: Vec<_> = of_app.take(size).copied().collect();
        for row in &rows {
            self.late.remove(row);
        }
        Some(WorkerBatch {
            id: self.next_batch(),
            variant,
            from_stage: 0,
            to_stage,
            exit: Some(exit),
            members: rows.into_iter().map(|(_, id)| id).collect(),
            expected: Micros::ZERO,
            load: Micros::ZERO,
            decided: self.decided_by_host(),
            pinned: false,
            late: true,
        })
    }

    fn best_on(&self, app: AppId, kind: KindId, memory_bytes: u64) -> Option<(VariantId, ExitId)> {
        let mut best: Option<(EfficientBatch, (VariantId, ExitId))> = None;
        for (variant, found) in self.catalog.variants_of(app) {
            if found.memory_bytes > memory_bytes {
                continue;
            }
            for exit in (0..found.exits.len() as u32).map(ExitId) {
                if let Some(batch) = self.capacity.efficient(kind, variant, exit)
                    && best.is_none_or(|(other, _)| batch.is_better_than(other))
                {
                    best = Some((batch, (variant, exit)));
                }
            }
        }
        best.map(|(_, choice)| choice)
    }
}
