//! SneakPeek: grouped, data-aware scheduling of many apps' requests on few workers.
//!
//! Each window groups its requests by app and likely class. Each group gets one model, one worker
//! and a position in the order, to maximise the sum of utilities (eq. 3).
//!
//! In data order:
//! - `settings`: the settings
//! - `model`: the candidate models of each app; short-circuit (section 5.3.1)
//! - `job`: accuracy of each request with each model (sections 4.1 and 4.2, eq. 7 to 11), priority
//!   (section 5.1.1, eq. 12)
//! - `group`: groups (section 5.2), split by likely label (section 5.3.2); large groups are split
//!   (section 8)
//! - `timeline`, `problem`: start times (eq. 1), utilities (eq. 2); `price`: price of a worker's
//!   time
//! - `order`: Algorithm 1 beyond tau groups (eq. 13 and 14), and the baselines (section 6.1)
//! - `search`: Algorithm 1 up to tau groups, several workers (section 7, eq. 15)
//! - `merge`: label groups of an app as one
//! - `commit`: the part of the schedule that becomes the plan
//! - `lost`: requests of utility 0

#![forbid(unsafe_code)]

mod commit;
mod group;
mod job;
mod lost;
mod merge;
mod model;
mod order;
mod price;
mod problem;
mod search;
mod settings;
mod timeline;

use switchyard_sdk::catalog::Capabilities;
use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, RequestRef, Window, WindowFields, WorkerRef,
    export_policy,
};

use group::Groups;
use job::Jobs;
use model::AppModels;
use price::AccuracyFront;
use problem::{Schedule, SchedulingProblem};
use settings::{ScheduleAt, SneakPeekSettings};
use timeline::WorkerTimeline;

/// SneakPeek and the paper's baselines.
#[derive(Debug)]
pub struct SneakPeek {
    settings: SneakPeekSettings,
    apps: Vec<AppModels>,
    /// One per app with `foresight`, otherwise empty.
    fronts: Vec<AccuracyFront>,
    /// Whether some app can be answered from evidence.
    short_circuits: bool,
    /// When the next schedule is made while all workers are busy.
    due_us: u64,
    /// When a batch of lost requests may next go first.
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
        .wants(WindowFields::EVIDENCE | WindowFields::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = SneakPeekSettings::try_new(json)?;
        let apps = AppModels::of_catalog(catalog, &settings)?;
        catalog.log_quality();
        Ok(Self {
            short_circuits: apps.iter().any(|app| app.sneakpeek().is_some()),
            fronts: match settings.foresight {
                true => apps.iter().map(AccuracyFront::of).collect(),
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
        if self.settings.schedule_at == ScheduleAt::WindowEnd {
            self.schedule_window(window, &workers, plan);
            return Ok(());
        }
        let is_due = self.short_circuits && now_us >= self.due_us;
        // While all workers are busy, waiting keeps every choice open.
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

/// The workers to plan for. Idle workers with parked requests resume those first: no other worker
/// has their activations, and they hold memory.
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
    /// Schedules the requests of a window at its end, whatever the workers do then.
    fn schedule_window(&mut self, window: &Window, workers: &[WorkerRef], plan: &mut PlanBuilder) {
        let (now_us, length_us) = (window.now_us(), self.settings.window_us());
        let end_us = |us: u64| (us / length_us + 1).saturating_mul(length_us);
        let Some(oldest_us) = window.requests().map(RequestRef::arrival_us).min() else {
            return;
        };
        let due_us = self.due_us.max(end_us(oldest_us));
        if now_us < due_us {
            plan.wake_at(due_us);
            return;
        }
        self.due_us = end_us(now_us);
        self.jobs.fill(window, &self.apps, &self.settings);
        lost::answer(&mut self.jobs.lost, &self.apps, plan);
        self.decide(window, workers, plan);
        // As in the paper, every request of the window is scheduled; those of utility 0 run last.
        for worker in workers {
            let timeline = WorkerTimeline::new(*worker, window.catalog());
            while lost::run(&mut self.jobs.lost, &self.apps, &timeline, plan) > 0 {}
        }
        plan.wake_at(self.due_us);
    }

    /// Groups, schedules and commits the live requests.
    fn decide(&mut self, window: &Window, workers: &[WorkerRef], plan: &mut PlanBuilder) {
        let now_us = window.now_us();
        let (available, until_us) = match self.settings.schedule_at {
            ScheduleAt::Idle => {
                let until_us = now_us + self.settings.lookahead_us();
                (self.available(workers, now_us), until_us)
            }
            ScheduleAt::WindowEnd => (workers.len(), u64::MAX),
        };
        let price = self.price(window, workers.len());
        let Jobs {
            live, accuracies, ..
        } = &mut self.jobs;
        self.groups.fill(live, accuracies, &self.apps, available);
        let mut problem = SchedulingProblem {
            now_us,
            apps: &self.apps,
            jobs: live,
            accuracies,
            groups: &self.groups.list,
            sums: &self.groups.sums,
            charge_swap: self.settings.charge_swap,
            joins: self.settings.opportunistic,
            price,
        };
        let solved = |problem: &SchedulingProblem<'_>| {
            let timelines = timelines(window, workers, problem);
            let (schedule, how) = solve(&self.settings, problem, &timelines, until_us);
            (timelines, schedule, how)
        };
        let mut best = solved(&problem);
        let mut merged = Vec::new();
        if self.settings.merge {
            merged = merge::partitions(&problem, &best.1, available);
        }
        for other in &merged {
            let problem_of = other.problem(problem);
            let next = solved(&problem_of);
            if next.1.utility > best.1.utility {
                (best, problem) = (next, problem_of);
            }
        }
        let (timelines, schedule, how) = best;
        commit::commit(&problem, &timelines, &schedule, until_us, how, plan);
    }

    /// See [`price`].
    fn price(&self, window: &Window, workers: usize) -> f64 {
        let fronts = window.catalog().apps().zip(&self.fronts);
        let apps: Vec<_> = fronts
            .map(|(app, front)| (window.arrival_rate(app.id), front))
            .collect();
        price::price(&apps, workers)
    }

    /// Number of workers that can start a batch within the lookahead.
    fn available(&self, workers: &[WorkerRef], now_us: u64) -> usize {
        let until_us = now_us + self.settings.lookahead_us();
        workers
            .iter()
            .filter(|worker| worker.free_at_us() <= until_us)
            .count()
    }

    /// Runs a batch of lost requests first, at most once per `lost_wait_ms`: under lasting overload
    /// live requests would delay them for ever.
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
            let timeline = WorkerTimeline::new(workers[at], window.catalog());
            if lost::run(&mut self.jobs.lost, &self.apps, &timeline, plan) > 0 {
                workers.remove(at);
                self.lost_turn_us = now_us + wait_us;
            }
        }
    }

    /// Runs lost requests on workers that are still idle.
    fn fill_idle(&mut self, window: &Window, plan: &mut PlanBuilder) {
        for worker in window.workers().filter(WorkerRef::is_idle) {
            if self.jobs.lost.is_empty() {
                return;
            }
            if plan.batches_on(worker.id()) == 0 {
                let timeline = WorkerTimeline::new(worker, window.catalog());
                lost::run(&mut self.jobs.lost, &self.apps, &timeline, plan);
            }
        }
    }

    /// Asks for a window shortly before the next worker is free, so that its next batch is queued
    /// in time, and for one when a new schedule is due.
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

/// The schedule, and the reason that says how it was found.
fn solve(
    settings: &SneakPeekSettings,
    problem: &SchedulingProblem<'_>,
    timelines: &[WorkerTimeline],
    until_us: u64,
) -> (Schedule, &'static str) {
    let algorithm = settings.algorithm;
    let first = order::one_by_one(problem, timelines, algorithm, until_us);
    if !algorithm.groups() {
        return (first, order::name(algorithm));
    }
    if problem.groups.len() > settings.tau {
        return (first, "by-priority");
    }
    match search::exact(problem, timelines, first, settings.nodes_max) {
        (best, true) => (best, "exact"),
        (best, false) => (best, "best-found"),
    }
}

/// The workers that a schedule can use: as many as it has groups, the earliest free of each kind, without
/// and with early exits; and of each app that none of these holds the earliest that does, which saves a load.
/// Of equal workers the one without exits goes first.
fn timelines(
    window: &Window,
    workers: &[WorkerRef],
    problem: &SchedulingProblem<'_>,
) -> Vec<WorkerTimeline> {
    let mut timelines = Vec::new();
    let is_grouped = |app: &usize| problem.groups.iter().any(|group| group.app.index() == *app);
    let apps: Vec<_> = (0..problem.apps.len()).filter(is_grouped).collect();
    let kinds = 0..window.catalog().kinds();
    for alike in kinds.flat_map(|kind| [(kind, false), (kind, true)]) {
        let is_alike = |worker: &&WorkerRef<'_>| {
            let spec = window.catalog().worker(worker.id());
            (spec.kind().index(), spec.can.contains(Capabilities::EXITS)) == alike
        };
        let mut workers: Vec<_> = workers.iter().filter(is_alike).collect();
        workers.sort_by_key(|worker| (worker.free_at_us(), worker.id()));
        let later = workers.split_off(workers.len().min(problem.groups.len()));
        for models in apps.iter().map(|&app| &problem.apps[app].models) {
            let holds = |worker: &WorkerRef<'_>| {
                let mut runs = models.iter().filter_map(|model| model.run);
                runs.any(|(variant, _)| worker.holds(variant))
            };
            if problem.charge_swap && !workers.iter().any(|worker| holds(worker)) {
                workers.extend(later.iter().find(|worker| holds(worker)));
            }
        }
        let workers = workers.into_iter();
        timelines.extend(workers.map(|&worker| WorkerTimeline::new(worker, window.catalog())));
    }
    timelines
}

export_policy!(SneakPeek);

#[cfg(test)]
mod tests;
