//! Long requests: those that take several times as long as the requests of the profile.
//!
//! In a batch with others a long request would make all of them wait for its end, so it runs alone.
//! While others are likely to come during its run, it runs stage by stage: its stages are spread
//! over the time to its deadline, and the others run between them.

use super::queue::progress_of;
use super::{EarliestDeadlineFirst, FallbackChoice};
use crate::cost::Cost;
use crate::ids::{AppId, RequestId};
use crate::plan::Plan;
use crate::time::{Micros, Time};
use crate::window::Window;

/// A request is long above this cost.
const LONG: Cost = Cost::whole(4);

/// Stages are spread over three quarters of the time from arrival to deadline: the rest is for
/// batches of others that run when a stage is due.
const SPREAD: (u64, u64) = (3, 4);

/// Stages are at most this many times their own time apart: then nine tenths of a worker are for
/// others.
const APART_MAX: u64 = 10;

/// The next run of a long request.
#[derive(Clone, Copy, Debug)]
struct NextRun {
    choice: FallbackChoice,
    latency: Micros,
    /// All stages that are left.
    remaining: Micros,
    /// When it may start.
    due: Time,
}

impl EarliestDeadlineFirst {
    pub(super) fn look_at_costs(&mut self, window: &Window) {
        self.costs.clear();
        self.long.clear();
        let requests = &window.requests;
        if requests.costs.is_empty() {
            return;
        }
        self.costs.extend(requests.costs_of_all());
    }

    /// The cost of the request at this position of the window.
    pub(super) fn cost(&self, i: usize) -> Cost {
        self.costs.get(i).copied().unwrap_or(Cost::ONE)
    }

    pub(super) fn is_long(&self, i: u32) -> bool {
        self.cost(i as usize) > LONG
    }

    /// Places the long requests that are due, unless another request would be late because of it. A
    /// last chance to be in time comes before all others.
    pub(super) fn start_long(&mut self, window: &Window, plan: &mut Plan) {
        let mut wake: Option<Time> = None;
        for at in 0..self.long.len() {
            let i = self.long[at] as usize;
            let Some(next) = self.next_run(window, i) else {
                continue; // The end of a batch makes room, and opens a window.
            };
            let start = self.free_at[next.choice.worker.index()];
            let deadline = Time(window.requests.deadline[i]);
            let in_time = start + next.remaining <= deadline;
            let is_last = in_time && start + next.remaining + next.latency > deadline;
            if is_last || next.due <= window.now && !self.delays_others(window, start, next) {
                self.run(window, i, next, plan);
            } else if next.due > window.now {
                wake = Some(wake.map_or(next.due, |wake| wake.min(next.due)));
            }
        }
        plan.wake = wake;
    }

    /// Places those that are due on the workers that the plan leaves idle.
    pub(super) fn fill_idle(&mut self, window: &Window, plan: &mut Plan) {
        for at in 0..self.long.len() {
            let i = self.long[at] as usize;
            if self.taken[i] {
                continue;
            }
            let Some(next) = self.next_run(window, i) else {
                continue;
            };
            let worker = next.choice.worker.index();
            let is_idle =
                self.free_at[worker] <= window.now && self.room[worker] == self.menu.room()[worker];
            if is_idle && next.due <= window.now {
                self.run(window, i, next, plan);
            }
        }
    }

    /// Whether the most urgent request of an app would be late behind this run.
    fn delays_others(&self, window: &Window, start: Time, next: NextRun) -> bool {
        let class = self.menu.class_of(next.choice.worker);
        let firsts = (0..).map(AppId).zip(&self.queues);
        let mut firsts = firsts.filter_map(|(app, queue)| {
            let deadline = window.requests.deadline[*queue.order.first()? as usize];
            let items = self.menu.items(class, app).iter();
            let fastest = items.map(|item| item.latency).min()?;
            Some((Time(deadline), self.slowdown(class).of(fastest)))
        });
        firsts.any(|(deadline, fastest)| {
            let in_time = start + fastest <= deadline;
            in_time && start + next.latency + fastest > deadline
        })
    }

    fn run(&mut self, window: &Window, i: usize, next: NextRun, plan: &mut Plan) {
        self.taken[i] = true;
        plan.members.push(RequestId(window.requests.id[i]));
        self.place(window.now, next.choice, next.latency, 1, plan);
    }

    /// The next run of a long request: all that is left, or one stage. None: no worker has room.
    fn next_run(&self, window: &Window, i: usize) -> Option<NextRun> {
        let progress = progress_of(window, i);
        let whole = match progress {
            Some(progress) => self.go_on(progress),
            None => self.choose(window, i),
        }?;
        let cost = self.cost(i);
        let remaining = self.latency(whole, cost);
        let at_once = NextRun {
            choice: whole,
            latency: remaining,
            remaining,
            due: window.now,
        };
        let stage = FallbackChoice {
            to_stage: whole.from_stage + 1,
            exit: None,
            ..whole
        };
        let can_stop = progress.is_some() || self.can_park(window, whole);
        if !expects_others(window, remaining) {
            return Some(at_once);
        }
        let (latency, choice) = match can_stop && stage.to_stage < whole.to_stage {
            true => (self.latency(stage, cost), stage),
            false => (remaining, whole),
        };
        if latency == Micros::ZERO {
            return Some(at_once); // Its stages were not measured.
        }
        let arrival = Time(window.requests.arrival[i]);
        let time = Time(window.requests.deadline[i]).since(arrival);
        let (run, stages) = (
            u64::from(whole.from_stage),
            u64::from(whole.to_stage.max(1)),
        );
        let (part, of) = SPREAD;
        let apart = (time.0 / of * part / stages).min(APART_MAX * latency.0);
        Some(NextRun {
            choice,
            latency,
            remaining,
            due: arrival + Micros(apart * run),
        })
    }

    /// Whether a worker may hold one more parked request.
    fn can_park(&self, window: &Window, choice: FallbackChoice) -> bool {
        let worker = choice.worker.index();
        let spec = &self.catalog.workers[worker];
        let parked = window.workers.parked.get(worker).copied();
        let may_park = self.foreign.may_park(worker, self.menu.largest_parking());
        let (true, Some(parked), Some(may_park)) =
            (spec.can.parking && spec.can.stage_ranges, parked, may_park)
        else {
            return false;
        };
        // One of those that this plan parks may be among them already.
        parked as usize + may_park + self.long.len() <= spec.parked_max as usize
    }
}

/// Whether another request is likely to come within this time.
fn expects_others(window: &Window, time: Micros) -> bool {
    let apps = window.arrival_rate.iter();
    let rate: f64 = apps.sum();
    rate * time.as_secs_f64() >= 1.0
}
