//! Slices: a batch that would make the next arrivals late stops between two stages, and goes on when nothing
//! more urgent waits for its worker.

use std::iter;

use switchyard_sdk::catalog::Capabilities;
use switchyard_sdk::utility::loss;
use switchyard_sdk::{
    Catalog, PlanBuilder, Reason, RequestId, RequestRef, VariantId, Window, WorkerId,
};

use crate::lanes::Lanes;
use crate::menu::at_rows;
use crate::search::NextBatch;
use crate::yard::Yard;

/// Requests that are parked on an idle worker and can share a batch.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    slot: usize,
    lane: usize,
    variant: VariantId,
    stages_run: u32,
    requests: Vec<RequestId>,
    /// Their cost together, in rows of the profile.
    rows: f64,
    /// Of the one that is due first: time since its arrival, and from there to its deadline.
    age_us: u64,
    allowed_us: u64,
    /// Utility of one answer in time.
    worth: f64,
}

/// The stages that a batch runs before its worker is free, and the time they take.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    /// None: all, and the exit's head.
    park_after: Option<u32>,
    time_us: f64,
}

// === impl Parked ===

impl Parked {
    /// Those of a slot's worker that are due first; none if nothing is parked there.
    pub(crate) fn first_on(
        window: &Window,
        lanes: &Lanes,
        yard: &Yard<'_>,
        slot: usize,
    ) -> Option<Self> {
        let worker = yard.slots[slot].worker;
        let parked = window.parked_on(worker);
        let (progress, first) = *parked
            .iter()
            .min_by_key(|(_, request)| request.deadline_us())?;
        let lane = lanes.of(first.app().index(), first.cost());
        let menu = &yard.menus[lane];
        let mut choices = menu.choices.iter().zip(&menu.unseen);
        let last = choices.rfind(|(choice, _)| choice.variant == progress.variant);
        let (catalog, from) = (window.catalog(), progress.stages_run);
        let most = latencies_us(catalog, worker, progress.variant, from, None).len();
        let alike = parked.iter().filter(|(other, _)| *other == progress);
        let others = alike.map(|(_, request)| *request);
        let others = others.filter(|other| other.id() != first.id());
        let together = iter::once(first).chain(others).take(most.max(1));
        Some(Self {
            slot,
            lane,
            variant: progress.variant,
            stages_run: progress.stages_run,
            rows: together.clone().map(RequestRef::cost).sum(),
            requests: together.map(RequestRef::id).collect(),
            age_us: first.age_us(),
            allowed_us: first.deadline_us().saturating_sub(first.arrival_us()),
            worth: last.map_or(0.0, |(_, accuracy)| accuracy + yard.jobs.punctuality),
        })
    }

    /// Utility of the answers `end_us` from now.
    fn gain(&self, yard: &Yard<'_>, end_us: f64) -> f64 {
        let lost = loss(
            yard.menus[self.lane].penalty,
            self.allowed_us,
            self.age_us + end_us as u64,
        );
        let wait = yard.jobs.wait_cost * end_us / (self.allowed_us as f64).max(1.0);
        self.requests.len() as f64 * (self.worth * (1.0 - lost) - wait)
    }

    /// Late by half the time that it had, as of `Lost::until_us`: it goes on at once.
    fn is_overdue(&self) -> bool {
        self.age_us > self.allowed_us + self.allowed_us / 2
    }

    /// Goes on with the parked requests, unless another batch is worth more and leaves them worth enough.
    pub(crate) fn go_on(
        self,
        yard: &mut Yard<'_>,
        window: &Window,
        price: f64,
        plan: &mut PlanBuilder,
    ) {
        let (slot, size) = (self.slot, self.requests.len());
        let rest_us = self.time_us(window, yard, None).unwrap_or(0.0);
        let slice = self.slice(window, yard, rest_us);
        let before = yard.slots[slot];
        yard.slots[slot].free_us += slice.time_us;
        let value = self.gain(yard, before.free_us + rest_us) + yard.rest();
        yard.slots[slot] = before;
        if let Some(batch) = yard.best_for(slot).filter(|_| !self.is_overdue()) {
            let choice = &yard.menus[batch.lane].choices[batch.choice];
            let end_us = before.free_us + before.time_us(choice, batch.jobs.len());
            if batch.value + self.gain(yard, end_us + rest_us) > value {
                yard.take(&batch);
                return dispatch(yard, window, &batch, price, plan);
            }
        }
        yard.slots[slot].free_us += slice.time_us;
        let on = plan
            .run(before.worker, self.variant)
            .resume(self.stages_run);
        let on = on.because(Reason::new("next-slice").with("requests", size as f64));
        match slice.park_after {
            Some(stages) => on.park_after(stages).requests(self.requests),
            None => on.requests(self.requests),
        };
    }

    /// Time of the remaining stages up to one, or of all with the last exit's head.
    fn time_us(&self, window: &Window, yard: &Yard<'_>, to: Option<u32>) -> Option<f64> {
        let (catalog, state) = (window.catalog(), &yard.slots[self.slot]);
        let latencies = latencies_us(catalog, state.worker, self.variant, self.stages_run, to);
        (!latencies.is_empty()).then(|| at_rows(&latencies, self.rows) * state.factor)
    }

    fn slice(&self, window: &Window, yard: &Yard<'_>, rest_us: f64) -> Slice {
        let stages = window.catalog().variant(self.variant).stages;
        let ends = (self.stages_run + 1..stages).filter_map(|to| {
            let time_us = self.time_us(window, yard, Some(to))?;
            Some((to, time_us))
        });
        yard.cut(self.slot, self.lane, rest_us, ends)
    }
}

/// Latencies by batch size, from 1, of the stages from one to another, or to the last exit and its head.
fn latencies_us(
    catalog: &Catalog,
    worker: WorkerId,
    variant: VariantId,
    from: u32,
    to: Option<u32>,
) -> Vec<f64> {
    let spec = catalog.variant(variant);
    let exit = to.is_none().then(|| spec.last_exit());
    let to = to.unwrap_or(spec.stages);
    let latencies_us = catalog.run_latencies_us(worker, variant, from, to, exit);
    latencies_us.iter().map(|&us| us as f64).collect()
}

/// Launches a batch, or its first stages.
pub(crate) fn dispatch(
    yard: &mut Yard<'_>,
    window: &Window,
    batch: &NextBatch,
    price: f64,
    plan: &mut PlanBuilder,
) {
    let choice = &yard.menus[batch.lane].choices[batch.choice];
    let state = yard.slots[batch.slot];
    let why = Reason::new("best-value")
        .with("value", batch.value)
        .with("price_per_s", price * 1e6);
    let slice = first_slice(yard, window, batch);
    let run = plan.run(state.worker, choice.variant).because(why);
    let run = match slice.park_after {
        Some(stages) => run.park_after(stages),
        None => run.exit(choice.exit),
    };
    run.requests(batch.jobs.iter().map(|&at| yard.jobs.list[at].id));
    if slice.park_after.is_some() {
        yard.slots[batch.slot].free_us = slice.time_us;
    }
}

/// The whole batch, unless its worker can park it and it can go on later to the same exit.
fn first_slice(yard: &Yard<'_>, window: &Window, batch: &NextBatch) -> Slice {
    let choice = &yard.menus[batch.lane].choices[batch.choice];
    let (state, size) = (&yard.slots[batch.slot], batch.jobs.len());
    let catalog = window.catalog();
    let (variant, worker) = (
        catalog.variant(choice.variant),
        catalog.worker(state.worker),
    );
    let parks = Capabilities::STAGE_RANGES | Capabilities::PARKING;
    let whole = Slice {
        park_after: None,
        time_us: state.free_us,
    };
    if variant.stages < 2 || choice.exit != variant.last_exit() || !worker.can.contains(parks) {
        return whole;
    }
    if window.parked_on(state.worker).len() + size > worker.parked_max as usize {
        return whole;
    }
    let rows = yard.rows(&batch.jobs);
    let latency_us = at_rows(&choice.costs[state.class].latencies_us, rows) * state.factor;
    let cost: f64 = batch.jobs.iter().map(|&at| yard.jobs.list[at].cost).sum();
    let load_us = (whole.time_us - latency_us).max(0.0);
    let ends = (1..variant.stages).filter_map(|to| {
        let latencies = latencies_us(catalog, state.worker, choice.variant, 0, Some(to));
        let latency_us = (size <= latencies.len()).then(|| at_rows(&latencies, cost))?;
        Some((to, latency_us * state.factor + load_us))
    });
    yard.cut(batch.slot, batch.lane, whole.time_us, ends)
}

// === impl Yard ===

impl Yard<'_> {
    /// The longest slice of a slot's batch after which the next arrival of every other lane is in time, of
    /// those that end after some stages or of the `whole`; if none is short enough, the shortest.
    fn cut(
        &self,
        slot: usize,
        lane: usize,
        whole_us: f64,
        ends: impl Iterator<Item = (u32, f64)>,
    ) -> Slice {
        let mut slice = Slice {
            park_after: None,
            time_us: whole_us,
        };
        if self.in_time_after(slot, lane, whole_us) {
            return slice;
        }
        for (to, time_us) in ends {
            if slice.park_after.is_some() && !self.in_time_after(slot, lane, time_us) {
                break;
            }
            slice = Slice {
                park_after: Some(to),
                time_us,
            };
        }
        slice
    }

    /// Whether an arrival of any lane but one would be in time on some slot, if this one were busy for so long;
    /// that of a lane that no slot answers in time does not count.
    fn in_time_after(&self, slot: usize, lane: usize, busy_us: f64) -> bool {
        let mut slots = self.slots.clone();
        let others = self.arrivals.iter().enumerate();
        let mut others = others.filter(|(at, arrivals)| *at != lane && arrivals.per_us > 0.0);
        others.all(|(at, arrivals)| {
            let mut is_late_after = |us: f64| {
                slots[slot].free_us = us;
                let first = self.first_end(&self.menus[at], &slots, |_| 1, u64::MAX);
                first.is_none_or(|(end_us, ..)| end_us > arrivals.allowed_us)
            };
            !is_late_after(busy_us) || is_late_after(0.0)
        })
    }
}
