//! SneakPeek: grouped, data-aware scheduling of many apps' requests on few workers.
//!
//! Each window's requests are grouped by app and by the class they likely are of; each group
//! gets one model, a worker and a place in the order, so that the sum of utilities is as
//! high as can be found. `README.md` says which part of the paper is where.
//!
//! In data order:
//! - `settings`, `model`: what was configured, and what each app can be answered with
//! - `job`: what each request is worth with each model, and how urgent it is
//! - `group`: who is answered together
//! - `line`, `problem`: what it is worth to place a group on a worker; `price`: what it costs others
//! - `order`, `search`: Algorithm 1, beyond and up to tau groups; `order` has the baselines too
//! - `commit`: the part of the schedule that becomes the plan
//! - `lost`: requests for which it is too late

mod commit;
mod group;
mod job;
mod line;
mod lost;
mod model;
mod order;
mod price;
mod problem;
mod search;
mod settings;

use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, Sights, Window, WorkerRef, export_policy,
};

use group::Groups;
use job::Jobs;
use line::Line;
use model::AppModels;
use price::Front;
use problem::{Problem, Schedule};
use settings::Settings;

/// Grouped SneakPeek.
#[derive(Debug)]
pub struct SneakPeek {
    settings: Settings,
    apps: Vec<AppModels>,
    /// Of each app, where time has a price.
    fronts: Vec<Front>,
    /// Some app can be answered from evidence.
    short_circuits: bool,
    /// When the schedule is next made although no worker can take anything.
    due_us: u64,
    /// When a batch of lost requests may next go before the others.
    lost_turn_us: u64,
    jobs: Jobs,
    groups: Groups,
}

impl Policy for SneakPeek {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        Description::new(
            "sneakpeek",
            version,
            "grouped, data-aware, best sum of utilities",
        )
        .on(Events::ARRIVAL | Events::WORKER_IDLE)
        .wants(Sights::EVIDENCE | Sights::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        let apps = AppModels::of_catalog(catalog, &settings)?;
        Ok(Self {
            short_circuits: apps.iter().any(|app| app.sneakpeek().is_some()),
            fronts: match settings.foresight {
                true => apps.iter().map(Front::of).collect(),
                false => Vec::new(),
            },
            settings,
            apps,
            due_us: 0,
            lost_turn_us: 0,
            jobs: Jobs::default(),
            groups: Groups::default(),
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        let now_us = window.now_us();
        let mut workers = workers(window, plan);
        let is_due = self.short_circuits && now_us >= self.due_us;
        // While no worker can take anything, waiting keeps every choice open.
        if self.available(&workers, now_us) > 0 || is_due {
            self.due_us = now_us + self.settings.window_us();
            self.jobs.fill(window, &self.apps, &self.settings);
            lost::answer(&mut self.jobs.lost, &self.apps, plan);
            self.serve_starved(window, &mut workers, plan);
            self.decide(window, &workers, plan);
            self.fill_idle(window, plan);
        }
        self.ask_to_wake(window, &workers, plan);
        Ok(())
    }
}

/// Workers that can be planned for. One that has parked requests and nothing to do lets them
/// go on first: no other worker can, and they hold its memory.
fn workers<'a>(window: &Window<'a>, plan: &mut PlanBuilder) -> Vec<WorkerRef<'a>> {
    let takes = |worker: &WorkerRef<'_>| !worker.is_idle() || plan.resume_parked(worker.id()) == 0;
    window
        .workers()
        .filter(WorkerRef::is_up)
        .filter(takes)
        .collect()
}

// === impl SneakPeek ===

impl SneakPeek {
    /// Groups, schedules and commits the requests that are still worth something.
    fn decide(&mut self, window: &Window, workers: &[WorkerRef], plan: &mut PlanBuilder) {
        let now_us = window.now_us();
        let available = self.available(workers, now_us);
        let price = self.price(window, workers.len());
        let Jobs {
            live, accuracies, ..
        } = &mut self.jobs;
        self.groups.fill(live, accuracies, &self.apps, available);
        let problem = Problem {
            now_us,
            apps: &self.apps,
            jobs: live,
            accuracies,
            groups: &self.groups.list,
            sums: &self.groups.sums,
            charge_swap: self.settings.charge_swap,
            price,
        };
        let lines = lines(window, workers, problem.groups.len());
        let until_us = now_us + self.settings.lookahead_us();
        let (schedule, how) = solve(&self.settings, &problem, &lines, until_us);
        commit::commit(&problem, &lines, &schedule, until_us, how, plan);
    }

    /// See [`price`].
    fn price(&self, window: &Window, workers: usize) -> f64 {
        let fronts = window.catalog().apps().zip(&self.fronts);
        let apps: Vec<_> = fronts
            .map(|(app, front)| (window.arrival_rate(app.id), front))
            .collect();
        price::price(&apps, workers)
    }

    /// Workers that could start something before the lookahead is over.
    fn available(&self, workers: &[WorkerRef], now_us: u64) -> usize {
        let until_us = now_us + self.settings.lookahead_us();
        workers
            .iter()
            .filter(|worker| worker.free_at_us() <= until_us)
            .count()
    }

    /// Under lasting overload there is always something of worth to run. So that the lost
    /// end too, a batch of them goes first once in a while.
    fn serve_starved(
        &mut self,
        window: &Window,
        workers: &mut Vec<WorkerRef>,
        plan: &mut PlanBuilder,
    ) {
        let (now_us, wait_us) = (window.now_us(), self.settings.lost_wait_us());
        let is_starved = self.jobs.lost.first().is_some_and(|job| {
            let deadline_us = job.arrival_us.saturating_add(job.due_us);
            deadline_us.saturating_add(wait_us) <= now_us
        });
        if !is_starved || now_us < self.lost_turn_us || self.available(workers, now_us) == 0 {
            return;
        }
        let soonest = (0..workers.len()).min_by_key(|&at| workers[at].free_at_us());
        if let Some(at) = soonest {
            let line = Line::new(workers[at], window.catalog());
            if lost::run(&mut self.jobs.lost, &self.apps, &line, plan) > 0 {
                workers.remove(at);
                self.lost_turn_us = now_us + wait_us;
            }
        }
    }

    /// Idle workers that got nothing take lost requests.
    fn fill_idle(&mut self, window: &Window, plan: &mut PlanBuilder) {
        for worker in window.workers().filter(WorkerRef::is_idle) {
            if self.jobs.lost.is_empty() {
                return;
            }
            if plan.batches_on(worker.id()) == 0 {
                let line = Line::new(worker, window.catalog());
                lost::run(&mut self.jobs.lost, &self.apps, &line, plan);
            }
        }
    }

    /// While something may be left: a window shortly before the next worker is free, so that
    /// its next batch is there in time, and one when a new schedule is due.
    fn ask_to_wake(&self, window: &Window, workers: &[WorkerRef], plan: &mut PlanBuilder) {
        if window.is_empty() {
            return;
        }
        let ahead_us = self.settings.lookahead_us();
        let soon_us = window.now_us() + ahead_us;
        let later = workers
            .iter()
            .map(WorkerRef::free_at_us)
            .filter(|&free_us| free_us > soon_us);
        if let Some(free_us) = later.min() {
            plan.wake_at(free_us - ahead_us);
        }
        if self.short_circuits {
            plan.wake_at(self.due_us.max(window.now_us() + 1));
        }
    }
}

/// The schedule, and how it was found.
fn solve(
    settings: &Settings,
    problem: &Problem<'_>,
    lines: &[Line],
    until_us: u64,
) -> (Schedule, &'static str) {
    let algorithm = settings.algorithm;
    let first = order::one_by_one(problem, lines, algorithm, until_us);
    if !algorithm.groups() {
        return (first, order::name(algorithm));
    }
    if problem.groups.len() > settings.tau {
        return (first, "by-priority");
    }
    match search::exact(problem, lines, first, settings.nodes_max) {
        (best, true) => (best, "exact"),
        (best, false) => (best, "best-found"),
    }
}

/// The workers that a schedule of so many groups can need: of each kind the earliest free.
fn lines(window: &Window, workers: &[WorkerRef], groups: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for kind in 0..window.catalog().kinds() {
        let of_kind =
            |worker: &&WorkerRef<'_>| window.catalog().worker(worker.id()).kind().index() == kind;
        let mut of_kind: Vec<_> = workers.iter().filter(of_kind).collect();
        of_kind.sort_by_key(|worker| (worker.free_at_us(), worker.id()));
        let earliest = of_kind.into_iter().take(groups);
        lines.extend(earliest.map(|&worker| Line::new(worker, window.catalog())));
    }
    lines
}

export_policy!(SneakPeek);

#[cfg(test)]
mod tests;
