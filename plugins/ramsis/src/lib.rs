//! RAMSIS: each worker has a queue of its own and goes by a table that was solved beforehand. So
//! many requests wait, the first deadline is so far away: this variant, this batch.
//!
//! In data order:
//! - `settings`: which tables
//! - `sheet`: a set of tables, matched with the catalog
//! - `deal`: which sets serve, and on which workers
//! - `class`: requests of one app and deadline, and the table for the load
//! - `queues`: whose queue each request is in
//! - `state`: what is handed over to another version

mod class;
mod deal;
mod queues;
mod settings;
mod sheet;
mod state;

use switchyard_sdk::host::{self, Level};
use switchyard_sdk::ladder::Ladder;
use switchyard_sdk::{
    AppId, Catalog, Description, Events, PlanBuilder, Policy, Window, WorkerId, WorkerRef,
    export_policy,
};

use class::Class;
use deal::Deal;
use queues::Queues;
use settings::Settings;
use sheet::Index;
use state::State;

/// RAMSIS.
#[derive(Clone, Debug)]
pub struct Ramsis {
    settings: Settings,
    classes: Vec<Class>,
    /// By app, its classes; the most demanding deadline first.
    of_app: Vec<Vec<usize>>,
    /// By worker, its class and the sheet of it that it goes by.
    of_worker: Vec<Option<(usize, usize)>>,
    /// By worker and app: for requests that no table is for.
    ladders: Vec<Ladder>,
    queues: Queues,
    /// Positions of requests of one batch, kept between windows.
    batch: Vec<u32>,
}

impl Policy for Ramsis {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let summary = "RAMSIS: a queue per worker, models from tables solved beforehand";
        // Turns are by order of arrival, which is known later as well: while no worker is idle
        // nothing has to be decided.
        Description::new("ramsis", version, summary).on(Events::WORKER_IDLE)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        let (mut matched, mut complaints) = (Vec::new(), Vec::new());
        for folder in settings.folders() {
            match Index::read(folder)?.matched(catalog) {
                Ok(set) => matched.push(set),
                Err(complaint) => complaints.push(complaint),
            }
        }
        let Deal {
            mut classes,
            complaints: more,
        } = Deal::new(catalog, matched)?;
        complaints.extend(more);
        let of = |app: AppId| {
            let own = classes.iter().enumerate();
            let own = own.filter(move |(_, class)| class.app == app);
            own.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let of_app: Vec<Vec<usize>> = catalog.apps().map(|app| of(app.id)).collect();
        tell(catalog, &of_app, &complaints);
        // Until arrivals tell, each deadline of an app has a share as large as its workers'.
        for own in &of_app {
            let all: usize = own.iter().map(|&at| classes[at].workers.len()).sum();
            for &at in own {
                classes[at].share = classes[at].workers.len() as f64 / all.max(1) as f64;
            }
        }
        let mut of_worker = vec![None; catalog.workers().len()];
        for (at, class) in classes.iter().enumerate() {
            for &(worker, sheet) in &class.workers {
                of_worker[worker.index()] = Some((at, sheet));
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
            queues: Queues::default(),
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
        if !window.raw().requests.progress.is_empty() {
            for worker in window.workers().filter(WorkerRef::is_idle) {
                // What an earlier policy left half-run goes first: only this worker can end it.
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
        serde_json::to_vec(&State::of(&self.classes, &self.queues)).unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let state: State =
            serde_json::from_slice(state).map_err(|error| format!("state: {error}"))?;
        state.put(&mut self.classes, &mut self.queues)
    }
}

impl Ramsis {
    /// The tables of each class for this window's load (section 3.2.2).
    fn follow_loads(&mut self, window: &Window<'_>) {
        for class in &mut self.classes {
            let app_rps = self.settings.load_per_s;
            let app_rps = app_rps.unwrap_or_else(|| window.arrival_rate(class.app));
            let load_rps = app_rps * class.share;
            if !class.follow(load_rps) && !class.told {
                class.told = true;
                let app = &window.catalog().app(class.app).name;
                let (load, highest) = (load_rps.round(), class.highest_rps());
                let line = format!(
                    "app {app}: {load} requests per second are beyond all tables; those for \
                     {highest} serve"
                );
                host::log(Level::Warn, &line);
            }
        }
    }

    /// Each idle worker looks up what to run of its queue.
    fn serve_queues(&mut self, window: &Window<'_>, plan: &mut PlanBuilder<'_>) {
        let mut start = 0;
        while let Some(&(worker, first_us, _)) = self.queues.due.get(start) {
            let rest = &self.queues.due[start..];
            let waiting = rest.partition_point(|&(of, ..)| of <= worker);
            let own = start..start + waiting;
            start = own.end;
            let worker = WorkerId(worker);
            let is_idle = self.queues.workers[worker.index()].is_idle;
            let Some((class, sheet)) = self.of_worker[worker.index()].filter(|_| is_idle) else {
                continue;
            };
            let slack_us = first_us.wrapping_sub(window.now_us()).cast_signed();
            let Some((variant, batch)) = self.classes[class].action(sheet, waiting, slack_us)
            else {
                continue;
            };
            let app = self.classes[class].app;
            let rung = self.ladder(window, worker, app).rung(variant);
            let Some(rung) = rung else {
                continue;
            };
            let size = batch.min(rung.batch_max()).min(waiting);
            let ends_us = window.now_us() + rung.latency_us(size).unwrap_or(0);
            let first = self.queues.due[own].iter().take(size);
            let requests = first.map(|&(_, _, at)| window.request(at as usize));
            let size = plan.run(worker, variant).requests(requests);
            self.queues.runs(worker, size, ends_us);
        }
    }

    /// Idle workers with nothing of their own serve what no table is for, greedily.
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
            // The request that has waited longest chooses the app.
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

/// Says which tables are of no use and which apps have none.
fn tell(catalog: &Catalog, of_app: &[Vec<usize>], complaints: &[String]) {
    let without: Vec<String> = catalog
        .apps()
        .zip(of_app)
        .filter(|(_, classes)| classes.is_empty())
        .map(|(app, _)| app.name.clone())
        .collect();
    // Where all apps are served, folders for other pools are no fault.
    let level = if without.is_empty() {
        Level::Info
    } else {
        Level::Warn
    };
    for complaint in complaints {
        host::log(level, complaint);
    }
    if !without.is_empty() {
        let apps = without.join(", ");
        let line = format!("no tables for {apps}: the most accurate variant in time serves");
        host::log(Level::Warn, &line);
    }
}

export_policy!(Ramsis);

#[cfg(test)]
mod tests;
