//! Model selection by load: Jellyfish+, ModelSwitching and INFaaS as RAMSIS adapted them to
//! compare itself with, and the greedy selection of MDInference and ALERT.
//!
//! All have one central queue per app, from which idle workers eagerly take batches. None drops a
//! request. In data order:
//! - `settings`: which of them, and how
//! - `menu`: an app's models, and which of them a load allows
//! - [`responses`], `switching`: what ModelSwitching measured beforehand

mod menu;
pub mod responses;
mod settings;
mod switching;

use std::iter::Peekable;

use switchyard_sdk::catalog::App;
use switchyard_sdk::ladder::Ladder;
use switchyard_sdk::{
    AppId, Catalog, Description, Events, PlanBuilder, Policy, RequestRef, Window, WorkerId,
    WorkerRef, export_policy,
};

use menu::{Choice, Menu};
use responses::Responses;
use settings::{Algorithm, Settings};
use switching::Switching;

/// Model selection by load.
#[derive(Debug)]
pub struct Selection {
    settings: Settings,
    /// By the app's position in the catalog.
    apps: Vec<AppModels>,
}

/// One app's models and how they are chosen.
#[derive(Debug)]
struct AppModels {
    /// By worker.
    ladders: Vec<Ladder>,
    menu: Menu,
    switching: Switching,
    /// Of this window; none where each batch chooses.
    choice: Option<Choice>,
}

/// What waits for one app and no worker of this window has taken.
struct Queue<'a, I: Iterator> {
    app: &'a AppModels,
    waiting: Peekable<I>,
    left: usize,
}

impl Policy for Selection {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let summary = "one model per load: Jellyfish+, ModelSwitching, INFaaS; or greedy";
        // While no worker is idle nothing is decided: who comes first is known from the queue.
        Description::new("selection", version, summary).on(Events::WORKER_IDLE)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = Settings::try_new(json)?;
        let responses = match settings.algorithm {
            Algorithm::ModelSwitching => Some(switching::read(&settings.responses)?),
            _ => None,
        };
        let apps = catalog
            .apps()
            .map(|app| AppModels::new(catalog, app, responses.as_ref()));
        Ok(Self {
            apps: apps.collect::<Result<_, _>>()?,
            settings,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        if window.is_empty() {
            return Ok(());
        }
        let Self { settings, apps } = self;
        // All apps share the workers: each app's model must sustain what all of them ask for.
        let ids = window.catalog().apps().map(|app| app.id);
        let seen: f64 = ids.map(|app| window.arrival_rate(app)).sum();
        let load_rps = settings.load_per_s.unwrap_or(seen);
        for app in apps.iter_mut() {
            app.choose(settings, load_rps);
        }
        let apps: &[AppModels] = apps;
        let mut queues: Vec<_> = (0u32..)
            .map(AppId)
            .zip(apps)
            .map(|(id, app)| Queue {
                app,
                left: window.fresh_of(id).count(),
                waiting: window.fresh_of(id).peekable(),
            })
            .collect();
        let is_parked = !window.raw().requests.progress.is_empty();
        for worker in window.workers().filter(WorkerRef::is_idle) {
            // What an earlier policy left half-run goes first: only this worker can end it.
            if is_parked && plan.resume_parked(worker.id()) > 0 {
                continue;
            }
            if !is_parked && queues.iter().all(|queue| queue.left == 0) {
                break;
            }
            let able = queues.iter_mut().filter_map(|queue| {
                let first = *queue.waiting.peek()?;
                let batch = queue.app.batch(worker.id(), first, queue.left)?;
                Some((first.index(), batch, queue))
            });
            // The request that has waited longest chooses the app.
            if let Some((_, batch, queue)) = able.min_by_key(|(oldest, ..)| *oldest) {
                let taken = queue.waiting.by_ref().take(batch.batch_max);
                queue.left -= plan.run(worker.id(), batch.variant).requests(taken);
            }
        }
        Ok(())
    }
}

// === impl AppModels ===

impl AppModels {
    fn new(catalog: &Catalog, app: App<'_>, responses: Option<&Responses>) -> Result<Self, String> {
        let ladders = menu::ladders(catalog, app.id);
        let menu = Menu::new(catalog, app.id, &ladders);
        let switching = match responses {
            Some(responses) => Switching::new(catalog, app, &menu, responses)?,
            None => Switching::default(),
        };
        Ok(Self {
            ladders,
            menu,
            switching,
            choice: None,
        })
    }

    /// The model of this window.
    fn choose(&mut self, settings: &Settings, load_rps: f64) {
        let Self {
            menu, switching, ..
        } = self;
        self.choice = match settings.algorithm {
            Algorithm::Jellyfish => menu
                .sustaining(settings.headroom * load_rps)
                .or(menu.fastest),
            Algorithm::ModelSwitching => switching.at(load_rps),
            Algorithm::Infaas => menu.accurate(settings.accuracy),
            Algorithm::Greedy => None,
        };
    }

    /// What a worker takes of a queue of so many requests, the oldest of which is `first`.
    fn batch(&self, worker: WorkerId, first: RequestRef<'_>, waiting: usize) -> Option<Choice> {
        let ladder = &self.ladders[worker.index()];
        let Some(choice) = self.choice else {
            let (rung, batch_max) = ladder.greedy(waiting, first.slack_us())?;
            return Some(Choice {
                variant: rung.variant,
                batch_max,
            });
        };
        let largest = ladder.rung(choice.variant)?.batch_max();
        Some(Choice {
            batch_max: choice.batch_max.min(largest),
            ..choice
        })
    }
}

export_policy!(Selection);

#[cfg(test)]
mod tests;
