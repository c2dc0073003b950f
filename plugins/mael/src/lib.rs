//! MAEL maps the tasks of a window to workers of different kinds by expected latency; SLO-MAEL
//! counts SLO violations first; PSLO-MAEL cuts long tasks at stage boundaries.
//!
//! In data order:
//! - `settings`: the settings
//! - `models`: L(t, p) (section 4.2) and even slices (section 3.3)
//! - `observe`, `queue`: the queue of each worker, and the best position in it (Algorithm 1, lines
//!   12 and 13)
//! - `tasks`: the new tasks of a window, and the baselines (section 3.2)
//! - `problem`, `score`: the score of a mapping (Algorithm 1, lines 3 to 9; Algorithm 2, lines 7 to
//!   14)
//! - `search`: the best mapping (Algorithm 1, line 11)
//! - `mode`: whether long tasks are cut (Algorithm 3, lines 24 to 27)
//! - `commit`: the launches of a plan; sub-tasks in order (section 4.4)
//! - `state`: state kept between windows

#![forbid(unsafe_code)]

mod commit;
mod mode;
mod models;
mod observe;
mod problem;
mod queue;
mod score;
mod search;
mod settings;
mod state;
mod tasks;

use switchyard_sdk::window::Causes;
use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, RequestId, RequestRef, Window, WindowFields,
    WorkerRef, export_policy,
};

use commit::PlanWriter;
use models::CostTable;
use queue::{RunLength, WorkerQueue};
use settings::{MaelAlgorithm, MaelSettings, Slicing};
use state::MaelState;
use tasks::Placer;

/// MAEL, SLO-MAEL, PSLO-MAEL and the paper's baselines.
#[derive(Debug)]
pub struct Mael {
    settings: MaelSettings,
    models: CostTable,
    state: MaelState,
    /// End of the scheduling window, on the host's clock.
    due_us: u64,
}

impl Policy for Mael {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        Description::new(
            "mael",
            version,
            "best expected latencies over workers of different kinds",
        )
        .on(Events::ARRIVAL | Events::WORKER_IDLE)
        .wants(WindowFields::PLACED | WindowFields::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = MaelSettings::try_new(json)?;
        let models = CostTable::of_catalog(catalog, &settings);
        if let (MaelAlgorithm::Enr, Some(app)) = (settings.algorithm, models.without_energy()) {
            let name = &catalog.app(app).name;
            return Err(format!(
                "settings: algorithm: \"enr\" needs energy_uj in the profile, which has none for app {name}"
            ));
        }
        catalog.log_quality();
        Ok(Self {
            settings,
            models,
            state: MaelState::default(),
            due_us: 0,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        let now_us = window.now_us();
        let is_due = self.is_due(window);
        if !is_due
            && window
                .requests()
                .all(|request| request.progress().is_none())
        {
            plan.wake_at(self.due_us);
            return Ok(());
        }
        self.due_us = self.next_end_us(now_us);
        if self.decide(window, plan, is_due) {
            plan.wake_at(self.due_us);
        }
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.save()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.state = MaelState::restore(state)?;
        Ok(())
    }
}

impl Mael {
    /// Whether new tasks are placed now: the window has ended, or a worker is idle.
    fn is_due(&mut self, window: &Window) -> bool {
        let now_us = window.now_us();
        if self.settings.eager && window.workers().any(|worker| WorkerRef::is_idle(&worker)) {
            return true;
        }
        // The first arrival after a pause begins a window.
        let is_end = self.settings.eager || window.because().contains(Causes::WAKE);
        if now_us > self.due_us && !is_end {
            self.due_us = self.next_end_us(now_us);
        }
        now_us >= self.due_us
    }

    fn next_end_us(&self, now_us: u64) -> u64 {
        match self.settings.interval_us() {
            0 => now_us,
            interval_us => (now_us / interval_us + 1) * interval_us,
        }
    }

    fn slices(&self) -> bool {
        self.state.mode.on || self.settings.slicing == Slicing::Always
    }

    /// Plans; returns whether tasks are left for the next window.
    fn decide(&mut self, window: &Window, plan: &mut PlanBuilder, with_new: bool) -> bool {
        self.state.forget_ended(window);
        let rule = self.settings.algorithm.rule();
        let slices = self.slices();
        let mut queues = observe::queues(window, plan, &self.models, &self.state, rule);
        let held = self.put_held(window, &mut queues);
        self.put_parked(window, &held, &mut queues);
        let placer = Placer {
            window: *window,
            models: &self.models,
            settings: &self.settings,
            slices,
        };
        let is_new = |request: &RequestRef<'_>| {
            with_new && request.progress().is_none() && !held.contains(&request.id())
        };
        let mut tasks = placer.new_tasks(window.requests().filter(is_new), &queues);
        let new = tasks.len();
        let how = if self.settings.replan {
            let hosts = queues.clone();
            placer.recall(&mut tasks, &mut queues);
            let how = placer.place(&mut tasks, &mut queues);
            observe::mark_moved(&mut queues, &hosts);
            how
        } else {
            placer.place(&mut tasks, &mut queues)
        };
        if self.models.any_sliced() {
            let hold_us = self.settings.slice_hold_us();
            self.state.mode.update(window.now_us(), hold_us, &queues);
        }
        let commit = PlanWriter {
            window: *window,
            models: &self.models,
            slices,
            how,
        };
        let is_left = commit.apply(&queues, &mut self.state, plan);
        let is_fresh = |request: &RequestRef<'_>| request.progress().is_none();
        let waiting = window.requests().filter(is_fresh).count();
        is_left || waiting > new
    }

    /// Appends the held requests to their queues, in order.
    fn put_held(&self, window: &Window, queues: &mut [WorkerQueue]) -> Vec<RequestId> {
        let mut known = Vec::new();
        for &(worker, id) in &self.state.held {
            let Some(request) = window.requests().find(|request| request.id() == id) else {
                continue;
            };
            let Some(queue) = queues.get_mut(worker.index()).filter(|queue| queue.is_up) else {
                continue;
            };
            if let Some(entry) = self.waiting(window, request, queue) {
                queue.order.push(entry);
                known.push(id);
            }
        }
        known
    }

    /// Inserts parked requests into the queues of their workers.
    fn put_parked(&self, window: &Window, held: &[RequestId], queues: &mut [WorkerQueue]) {
        let parked = window
            .requests()
            .filter(|request| !held.contains(&request.id()));
        for request in parked {
            let Some(queue) = request
                .progress()
                .and_then(|progress| queues.get_mut(progress.worker.index()))
            else {
                continue;
            };
            let Some(entry) = self.waiting(window, request, queue) else {
                continue;
            };
            let rule = self.settings.algorithm.rule();
            let place = rule.map_or(0, |rule| queue.best_position(rule, &entry));
            queue.order.insert(place, entry);
        }
    }

    /// The entry of a pending request on the worker it belongs to.
    fn waiting(
        &self,
        window: &Window,
        request: RequestRef<'_>,
        queue: &WorkerQueue,
    ) -> Option<queue::QueueEntry> {
        let (work_us, length) = match request.progress() {
            Some(progress) => {
                let variant = window.catalog().variant(progress.variant);
                let of_rest = window.catalog().run_latencies_us(
                    progress.worker,
                    progress.variant,
                    progress.stages_run,
                    variant.stages,
                    Some(variant.last_exit()),
                );
                (of_rest.first().copied()?, RunLength::Begun)
            }
            None => {
                let cost =
                    self.models
                        .preferred(request.app(), queue.worker, request.min_quality())?;
                match (cost.slices.is_empty(), self.slices()) {
                    (true, _) => (cost.latency_us, RunLength::Short),
                    (false, false) => (cost.latency_us, RunLength::Long),
                    (false, true) => (cost.sliced_us(), RunLength::Sliced),
                }
            }
        };
        Some(observe::pending(request, work_us, length))
    }
}

export_policy!(Mael);

#[cfg(test)]
mod tests;
