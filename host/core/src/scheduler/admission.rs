//! Admission: which arrivals can be answered in time, and which app asks for more than its share.

use super::Scheduler;
use crate::capacity::EfficientBatch;
use crate::catalog::Late;
use crate::cost::Cost;
use crate::deadlines::DeadlineSet;
use crate::estimate::{BatchSeries, SLOWDOWN_MIN};
use crate::flood::{Demands, Flood, fair_level};
use crate::ids::{AppId, RequestId, VariantId};
use crate::load::LOAD_WINDOW;
use crate::request::Rejection;
use crate::table::{RequestEntry, RequestState};
use crate::time::{Micros, Time};

/// Of the requests that look hopeless, one in this time is served all the same: the profile may be too
/// slow, and only a batch can show that.
const PROBE_EVERY: Micros = Micros::from_millis(1_000);

/// While others wait, probes take at most one part in this many of a worker's time.
const PROBE_SHARE: u64 = 10;

/// While others wait, no probe follows the last one later: an estimate would have forgotten that.
const PROBE_EVERY_MAX: Micros = Micros::from_millis(4_000);

impl Scheduler {
    /// Lets a request in that can be answered in time. False: it has ended, or waits until nothing
    /// else does.
    pub(super) fn admit(&mut self, now: Time, id: RequestId) -> bool {
        let Some(why) = self.hindrance(now, id) else {
            return true;
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
        let cost = request.cost;
        let mut outlook = self.outlook(now, app)?;
        let own = match pinned {
            Some(variant) => self.fastest_of(now, variant, cost),
            None => self.fastest(now, app, cost),
        };
        outlook.fastest = own.unwrap_or(outlook.fastest);
        if now + outlook.fastest > deadline {
            let is_probe = self.probes(now, id, outlook.fastest);
            return (!is_probe).then_some(Rejection::DeadlineTooShort);
        }
        if outlook.start + outlook.fastest > deadline {
            return Some(Rejection::Overloaded);
        }
        if pinned.is_some() {
            return None;
        }
        let waiting = self.table.guarded(app).map_or(0, DeadlineSet::len);
        let cap = 2 * outlook.enough.max(1);
        if waiting > cap && self.is_flooding(now, app) {
            self.flood = Some(Flood {
                app,
                until: now + LOAD_WINDOW,
                batch: outlook.usual,
            });
            return Some(Rejection::AboveShare);
        }
        let time_left = deadline.since(outlook.start + outlook.fastest);
        let places = self.served_within(now, app, time_left);
        let ahead = self.table.guarded(app).map_or(0, |waiting| {
            match waiting.len() as u64 > places {
                // Only requests with an earlier deadline are ahead.
                true => waiting
                    .before((deadline, id))
                    .take(places as usize + 1)
                    .count(),
                false => 0,
            }
        });
        let is_full = match self.costs.differ() {
            true => self.cost_ahead(app, (deadline, id), places) > places as f64,
            false => ahead as u64 > places,
        };
        is_full.then_some(Rejection::Overloaded)
    }

    /// Rows of the profile that an app's requests before this one cost; stops beyond `most`.
    fn cost_ahead(&self, app: AppId, before: (Time, RequestId), most: u64) -> f64 {
        let Some(waiting) = self.table.guarded(app) else {
            return 0.0;
        };
        let mut ahead = 0.0;
        for (_, id) in waiting.before(before) {
            ahead += self.table.cost(id).as_f64();
            if ahead > most as f64 {
                break;
            }
        }
        ahead
    }

    /// The most requests of an app that all workers together serve in this time.
    fn served_within(&self, now: Time, app: AppId, time: Micros) -> u64 {
        let best = self.capacity.app(app).best.batch;
        let latency = self.estimates.of_kind(now, best.kind).of(best.latency);
        let workers = self.workers.expected() as u64;
        let served = u128::from(time.0) * u128::from(workers) * u128::from(best.size);
        let served = served / u128::from(latency.0.max(1));
        u64::try_from(served).unwrap_or(u64::MAX)
    }

    fn fastest_of(&self, now: Time, variant: VariantId, cost: Cost) -> Option<Micros> {
        let exit = self.catalog.variant(variant)?.last_exit();
        let cost = cost.max(Cost::ONE);
        let latencies = self.workers.all_classes().iter().filter_map(|class| {
            let to_exit = (variant, exit);
            let series = BatchSeries::to_exit(&self.catalog, class.kind, to_exit, cost)?;
            let latency = series.latency(&self.catalog, cost)?;
            let slowdown = match cost > Cost::ONE {
                true => self.estimates.of_series(now, series),
                false => self.estimates.of_kind(now, class.kind),
            };
            Some(slowdown.of(latency))
        });
        latencies.min()
    }

    /// Lets a request in that looks hopeless, if the last probe is long enough ago.
    fn probes(&mut self, now: Time, id: RequestId, takes: Micros) -> bool {
        let is_alone = self.table.pending().len() <= 1 && self.workers.any_idle();
        let every = match is_alone {
            true => Some(PROBE_EVERY),
            false => self.probe_every(now, id, takes),
        };
        if every.is_none_or(|every| self.last_probe.is_some_and(|at| now.since(at) < every)) {
            return false;
        }
        self.last_probe = Some(now);
        if let Some(entry) = self.table.get_mut(id) {
            entry.probe = true;
        }
        self.table.set_state(id, RequestState::Pending);
        true
    }

    /// The time between probes while others wait; none: a probe would show nothing, or cost too much.
    fn probe_every(&self, now: Time, id: RequestId, takes: Micros) -> Option<Micros> {
        let deadline = self.table.get(id)?.request.deadline;
        let may_fit = now + SLOWDOWN_MIN.of(takes) <= deadline;
        let every = PROBE_EVERY.max(Micros(takes.0.saturating_mul(PROBE_SHARE)));
        let is_worth_it = self.config.follows_latencies && may_fit && every <= PROBE_EVERY_MAX;
        is_worth_it.then_some(every)
    }

    /// Whether the apps together ask for more than the workers can do with the fastest variants.
    pub(super) fn is_past_capacity(&mut self, now: Time) -> bool {
        self.load.advance(now);
        let demand = |app| self.demand(now, app, self.capacity.app(app).best.batch);
        let demands: f64 = self.catalog.app_ids().map(demand).sum();
        demands > self.workers.expected() as f64
    }

    /// The least time of a worker, in microseconds, that a request of this app and cost takes: its share of
    /// the batch that answers most requests per second, at the latencies of now. 0 for an app without a
    /// profile.
    pub fn least_work_us(&self, now: Time, app: AppId, cost: Cost) -> f64 {
        let batch = self.capacity.app(app).best.batch;
        let latency = self.estimates.of_kind(now, batch.kind).of(batch.latency);
        latency.0 as f64 * cost.as_f64() / f64::from(batch.size.max(1))
    }

    /// The workers that an app's requests keep busy at the present rate, in these batches.
    fn demand(&self, now: Time, app: AppId, batch: EfficientBatch) -> f64 {
        let latency = self.estimates.of_kind(now, batch.kind).of(batch.latency);
        let rate = self.load.rate(app) * self.costs.mean(app);
        rate * latency.as_secs_f64() / f64::from(batch.size.max(1))
    }

    /// Whether an app asks for more than its max-min fair share of the workers. A policy that adapts
    /// may turn to the fastest variants when queues grow, so their rates count for its apps.
    fn is_flooding(&mut self, now: Time, app: AppId) -> bool {
        self.load.advance(now);
        let demand = |app| {
            let batch = match self.habit(app).adapts() {
                true => self.capacity.app(app).best.batch,
                false => self.usual_batch(app),
            };
            self.demand(now, app, batch)
        };
        let demands: Demands = self.catalog.app_ids().map(demand).collect();
        let asked = demands.get(app.index()).copied().unwrap_or_default();
        asked > fair_level(demands, self.workers.expected() as f64)
    }
}
