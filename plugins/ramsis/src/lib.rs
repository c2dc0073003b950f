//! RAMSIS: each worker has its own queue and looks up its variant and batch in a table solved
//! offline, by the number of waiting requests and the slack of the first deadline.
//!
//! The requests stay pending on the host; only this policy knows their workers. A window costs one
//! pass over the pending requests.
//!
//! In data order:
//! - `settings`: the settings
//! - `artifacts`: sets of tables, matched with the catalog
//! - `assign`: the sets that serve, and their workers (section 4, appendix G)
//! - `class`: requests of one app and deadline; the table for the load (section 3.2.2) and the
//!   action for a state (sections 4.2 and 4.3.2)
//! - `queues`: the worker of each request, in turn or by the shortest queue (section 3.2.1), in
//!   deadline order (section 3.2.2)
//! - `state`: state saved for another version

#![forbid(unsafe_code)]

mod artifacts;
mod assign;
mod class;
mod queues;
mod settings;
mod state;

use switchyard_sdk::host::{self, Level};
use switchyard_sdk::ladder::Ladder;
use switchyard_sdk::{
    AppId, Catalog, Description, Events, PlanBuilder, Policy, Window, WorkerId, WorkerRef,
    export_policy,
};

use artifacts::SetIndex;
use assign::Assignment;
use class::RequestClass;
use queues::WorkerQueues;
use settings::{Drain, RamsisSettings};
use state::RamsisState;

/// The RAMSIS policy.
#[derive(Clone, Debug)]
pub struct Ramsis {
    settings: RamsisSettings,
    classes: Vec<RequestClass>,
    /// Per app, its classes; the shortest deadline first.
    of_app: Vec<Vec<usize>>,
    /// Per worker, its class and the index of its kind there.
    of_worker: Vec<Option<(usize, usize)>>,
    /// Per worker and app, for requests without tables.
    ladders: Vec<Ladder>,
    queues: WorkerQueues,
    /// Buffer of request indices, kept between windows.
    batch: Vec<u32>,
}

impl Policy for Ramsis {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let summary = "RAMSIS: a queue per worker, models from tables solved beforehand";
        // Turns follow the order of arrival, so nothing is decided while all workers are busy.
        Description::new("ramsis", version, summary).on(Events::WORKER_IDLE)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = RamsisSettings::try_new(json)?;
        let (mut matched, mut unused) = (Vec::new(), Vec::new());
        for folder in &settings.tables {
            match SetIndex::read(folder)?.matched(catalog) {
                Ok(set) => matched.push(set),
                Err(reason) => unused.push(reason),
            }
        }
        let Assignment {
            mut classes,
            unused: more,
        } = Assignment::new(catalog, matched)?;
        unused.extend(more);
        let of = |app: AppId| {
            let own = classes.iter().enumerate();
            let own = own.filter(move |(_, class)| class.app == app);
            own.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let of_app: Vec<Vec<usize>> = catalog.apps().map(|app| of(app.id)).collect();
        log_unused(catalog, &of_app, &unused);
        // Before any arrivals, the share of a deadline is its share of the app's workers.
        for own in &of_app {
            let all: usize = own.iter().map(|&at| classes[at].workers.len()).sum();
            for &at in own {
                classes[at].share = classes[at].workers.len() as f64 / all.max(1) as f64;
            }
        }
        let mut of_worker = vec![None; catalog.workers().len()];
        for (at, class) in classes.iter().enumerate() {
            for &(worker, kind) in &class.workers {
                of_worker[worker.index()] = Some((at, kind));
            }
        }
        let ladders = catalog.workers().flat_map(|worker| {
            let apps = catalog.apps();
            apps.map(move |app| Ladder::new(catalog, worker.id, app.id))
        });
        Ok(Self {
            ladders: ladders.collect(),
            settings,
            classes,
            of_app,
            of_worker,
            queues: WorkerQueues::default(),
            batch: Vec::new(),
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        self.follow_loads(window);
        let Self {
            queues,
            classes,
            of_app,
            ..
        } = self;
        queues.fill(window, classes, of_app);
        if window.any_parked() {
            for worker in window.workers().filter(WorkerRef::is_idle) {
                // Parked requests first: only this worker has their activations.
                let resumed = plan.resume_parked(worker.id());
                if resumed > 0 {
                    self.queues.runs(worker.id(), resumed, window.now_us());
                }
            }
        }
        self.serve_queues(window, plan);
        self.serve_shared(window, plan);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        serde_json::to_vec(&RamsisState::of(&self.classes, &self.queues)).unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let state: RamsisState =
            serde_json::from_slice(state).map_err(|error| format!("state: {error}"))?;
        state.put(&mut self.classes, &mut self.queues)
    }
}

impl Ramsis {
    /// Selects the tables of each class for this window's load (section 3.2.2).
    fn follow_loads(&mut self, window: &Window<'_>) {
        for class in &mut self.classes {
            let app_rps = self.settings.load_per_s;
            let app_rps = app_rps.unwrap_or_else(|| window.arrival_rate(class.app));
            let load_rps = app_rps * class.share;
            if !class.follow(load_rps) && !class.logged_overload {
                class.logged_overload = true;
                let app = &window.catalog().app(class.app).name;
                let (load, highest) = (load_rps.round(), class.highest_rps());
                let line = format!(
                    "app {app}: the load of {load}/s is beyond all tables, the highest is for \
                     {highest}/s; run `switchyard prepare ramsis`"
                );
                host::log(Level::Warn, &line);
            }
        }
    }

    /// Launches, on each idle worker, the action that its table has for its queue.
    fn serve_queues(&mut self, window: &Window<'_>, plan: &mut PlanBuilder<'_>) {
        let mut start = 0;
        while let Some(&(worker, first_us, _)) = self.queues.due.get(start) {
            let rest = &self.queues.due[start..];
            let waiting = rest.partition_point(|&(of, ..)| of <= worker);
            let own = start..start + waiting;
            start = own.end;
            let is_idle = self.queues.workers[worker.index()].is_idle;
            let Some((class, kind)) = self.of_worker[worker.index()].filter(|_| is_idle) else {
                continue;
            };
            let slack_us = first_us.wrapping_sub(window.now_us()).cast_signed();
            let Some((variant, batch)) = self.classes[class].action(kind, waiting, slack_us) else {
                continue;
            };
            let app = self.classes[class].app;
            let rung = self.ladder(window, worker, app).rung(variant);
            let Some(rung) = rung else {
                continue;
            };
            let is_beyond = waiting > self.classes[class].queue_max(kind);
            let batch = match self.settings.drain {
                Drain::Whole if is_beyond => waiting,
                _ => batch,
            };
            let size = batch.min(rung.batch_max()).min(waiting);
            let ends_us = window.now_us() + rung.latency_us(size).unwrap_or(0);
            let first = self.queues.due[own].iter().take(size);
            let requests = first.map(|&(_, _, at)| window.request(at as usize));
            let size = plan.run(worker, variant).requests(requests);
            self.queues.runs(worker, size, ends_us);
        }
    }

    /// Serves requests without tables greedily, on workers that are still idle.
    fn serve_shared(&mut self, window: &Window<'_>, plan: &mut PlanBuilder<'_>) {
        let mut shared = std::mem::take(&mut self.queues.shared);
        let mut batch = std::mem::take(&mut self.batch);
        for worker in (0..self.queues.workers.len() as u32).map(WorkerId) {
            if shared.is_empty() {
                break;
            }
            if !self.queues.workers[worker.index()].is_idle {
                continue;
            }
            // The oldest request chooses the app.
            let app_of = |at: u32| window.request(at as usize).app();
            let can_run = |at: &&u32| self.ladder(window, worker, app_of(**at)).batch_max() > 0;
            let Some(app) = shared.iter().find(can_run).map(|&at| app_of(at)) else {
                continue;
            };
            batch.clear();
            batch.extend(shared.iter().filter(|&&at| app_of(at) == app));
            let slack = |&at: &u32| window.request(at as usize).slack_us();
            let first_us = batch.iter().map(slack).min().unwrap_or(0);
            let chosen = self
                .ladder(window, worker, app)
                .greedy(batch.len(), first_us);
            let Some((rung, size)) = chosen else {
                continue;
            };
            let variant = rung.variant;
            let ends_us = window.now_us() + rung.latency_us(size).unwrap_or(0);
            batch.sort_by_key(slack);
            let requests = batch.iter().take(size);
            let requests = requests.map(|&at| window.request(at as usize));
            let size = plan.run(worker, variant).requests(requests);
            self.queues.runs(worker, size, ends_us);
            shared.retain(|at| !batch[..size].contains(at));
        }
        (self.queues.shared, self.batch) = (shared, batch);
    }

    fn ladder(&self, window: &Window<'_>, worker: WorkerId, app: AppId) -> &Ladder {
        let apps = window.catalog().apps().len();
        &self.ladders[worker.index() * apps + app.index()]
    }
}

/// Logs the tables that are not used and the apps without tables.
fn log_unused(catalog: &Catalog, of_app: &[Vec<usize>], unused: &[String]) {
    let without: Vec<String> = catalog
        .apps()
        .zip(of_app)
        .filter(|(_, classes)| classes.is_empty())
        .map(|(app, _)| app.name.clone())
        .collect();
    // If all apps have tables, unused folders for other pools are fine.
    let level = if without.is_empty() {
        Level::Info
    } else {
        Level::Warn
    };
    for reason in unused {
        host::log(level, reason);
    }
    if !without.is_empty() {
        let apps = without.join(", ");
        let line =
            format!("no tables for {apps}: served greedily by the most accurate variant in time");
        host::log(Level::Warn, &line);
    }
}

export_policy!(Ramsis);

#[cfg(test)]
mod tests;
