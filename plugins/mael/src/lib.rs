//! MAEL: tasks of one window are mapped to processors of different kinds so that their expected
//! latencies, looked up in the profile, are best; SLO-MAEL minds SLOs first; PSLO-MAEL cuts long
//! runs at stage boundaries so that shorter ones can pass. `README.md` says which part of the
//! paper is where.
//!
//! In data order:
//! - `settings`, `models`: what was configured, and L(t, p) with the slices
//! - `yard`, `line`: what runs and waits on each worker, and the best place in a queue
//! - `tasks`: the new tasks of a window
//! - `problem`, `score`, `search`: the best mapping of them
//! - `mode`: whether long runs are cut
//! - `commit`: what of it can be queued now
//! - `state`: what is remembered

mod commit;
mod line;
mod mode;
mod models;
mod problem;
mod score;
mod search;
mod settings;
mod state;
mod tasks;
mod yard;

use switchyard_sdk::window::Causes;
use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, RequestId, RequestRef, Sights, Window,
    WorkerRef, export_policy,
};

use commit::Commit;
use line::{Length, Line};
use models::Models;
use settings::{Algorithm, Settings, Slicing};
use state::State;
use tasks::Placer;

/// MAEL, its kin and its baselines.
#[derive(Debug)]
pub struct Mael {
    settings: Settings,
    models: Models,
    state: State,
    /// End of the window that gathers now, on the host's clock.
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
        .wants(Sights::PLACED | Sights::RESIDENTS)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        let models = Models::of_catalog(catalog, &settings);
        if let (Algorithm::Enr, Some(app)) = (settings.algorithm, models.without_energy()) {
            let name = &catalog.app(app).name;
            return Err(format!(
                "settings: algorithm: enr: the profile knows no energy of {name}"
            ));
        }
        Ok(Self {
            settings,
            models,
            state: State::default(),
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
        self.state = State::restore(state)?;
        Ok(())
    }
}

impl Mael {
    /// Whether new tasks are placed now: a window has ended, or a worker has nothing to do.
    fn is_due(&mut self, window: &Window) -> bool {
        let now_us = window.now_us();
        if self.settings.eager && window.workers().any(|worker| WorkerRef::is_idle(&worker)) {
            return true;
        }
        // The first arrival after a pause does not end a window, it begins one.
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

    /// Plans; returns whether something is left for the next window.
    fn decide(&mut self, window: &Window, plan: &mut PlanBuilder, with_new: bool) -> bool {
        self.state.forget_ended(window);
        let rule = self.settings.algorithm.rule();
        let slices = self.slices();
        let mut lines = yard::lines(window, plan, &self.models, &self.state, rule);
        let held = self.put_held(window, &mut lines);
        self.put_parked(window, &held, &mut lines);
        let placer = Placer {
            window: *window,
            models: &self.models,
            settings: &self.settings,
            slices,
        };
        let is_new = |request: &RequestRef<'_>| {
            with_new && request.progress().is_none() && !held.contains(&request.id())
        };
        let mut fresh = placer.fresh(window.requests().filter(is_new), &lines);
        let new = fresh.len();
        let how = if self.settings.replan {
            let hosts = lines.clone();
            placer.recall(&mut fresh, &mut lines);
            let how = placer.place(&mut fresh, &mut lines);
            yard::mark_moved(&mut lines, &hosts);
            how
        } else {
            placer.place(&mut fresh, &mut lines)
        };
        if self.models.any_sliced() {
            let hold_us = self.settings.slice_hold_us();
            self.state.mode.update(window.now_us(), hold_us, &lines);
        }
        let commit = Commit {
            window: *window,
            models: &self.models,
            slices,
            how,
        };
        let is_left = commit.apply(&lines, &mut self.state, plan);
        let is_fresh = |request: &RequestRef<'_>| request.progress().is_none();
        let waiting = window.requests().filter(is_fresh).count();
        is_left || waiting > new
    }

    /// Requests that were held go to the ends of their lines, in their order.
    fn put_held(&self, window: &Window, lines: &mut [Line]) -> Vec<RequestId> {
        let mut known = Vec::new();
        for &(worker, id) in &self.state.held {
            let Some(request) = window.requests().find(|request| request.id() == id) else {
                continue;
            };
            let Some(line) = lines.get_mut(worker.index()).filter(|line| line.is_up) else {
                continue;
            };
            if let Some(entry) = self.waiting(window, request, line) {
                line.order.push(entry);
                known.push(id);
            }
        }
        known
    }

    /// Requests that have run some stages go on where they are.
    fn put_parked(&self, window: &Window, held: &[RequestId], lines: &mut [Line]) {
        let parked = window
            .requests()
            .filter(|request| !held.contains(&request.id()));
        for request in parked {
            let Some(line) = request
                .progress()
                .and_then(|progress| lines.get_mut(progress.worker.index()))
            else {
                continue;
            };
            let Some(entry) = self.waiting(window, request, line) else {
                continue;
            };
            let rule = self.settings.algorithm.rule();
            let place = rule.map_or(0, |rule| line.best_place(rule, &entry));
            line.order.insert(place, entry);
        }
    }

    /// The entry of a pending request on the worker it belongs to.
    fn waiting(
        &self,
        window: &Window,
        request: RequestRef<'_>,
        line: &Line,
    ) -> Option<line::Entry> {
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
                (of_rest.first().copied()?, Length::Begun)
            }
            None => {
                let run = self
                    .models
                    .run(request.app(), line.worker, request.min_accuracy())?;
                match (run.slices.is_empty(), self.slices()) {
                    (true, _) => (run.latency_us, Length::Short),
                    (false, false) => (run.latency_us, Length::Long),
                    (false, true) => (run.sliced_us(), Length::Sliced),
                }
            }
        };
        Some(yard::pending(request, work_us, length))
    }
}

export_policy!(Mael);

#[cfg(test)]
mod tests;
