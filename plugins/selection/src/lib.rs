//! Model selection by load: the baselines of RAMSIS (Jellyfish+, ModelSwitching, INFaaS), and the
//! greedy selection of MDInference and ALERT.
//!
//! All have one central queue per app, from which idle workers take batches at once. None drops a
//! request. In data order:
//! - `settings`: the settings
//! - `menu`: an app's models, and the model for a load (Jellyfish+ and its batches: section 7;
//!   INFaaS: appendix H). The load is the host's average over 500 ms (section 6).
//! - [`responses`], `switching`: ModelSwitching (section 7) and its measurements
//! - greedy selection (section 8) is `switchyard_sdk::ladder`

#![forbid(unsafe_code)]

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

use menu::{Menu, ModelChoice};
use responses::Responses;
use settings::{SelectionAlgorithm, SelectionSettings};
use switching::LoadSteps;

/// Model selection by load.
#[derive(Debug)]
pub struct Selection {
    settings: SelectionSettings,
    /// One per app, in the catalog's order.
    apps: Vec<AppSelector>,
}

/// One app's models and their selection.
#[derive(Debug)]
struct AppSelector {
    /// One per worker.
    ladders: Vec<Ladder>,
    menu: Menu,
    switching: LoadSteps,
    /// The model of this window; none if each batch chooses.
    choice: Option<ModelChoice>,
}

/// One app's requests that are in no batch of this plan.
struct AppQueue<'a, I: Iterator> {
    app: &'a AppSelector,
    waiting: Peekable<I>,
    left: usize,
}

impl Policy for Selection {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let summary = "one model per load: Jellyfish+, ModelSwitching, INFaaS; or greedy";
        // Nothing is decided while all workers are busy: requests wait in the central queue.
        Description::new("selection", version, summary).on(Events::WORKER_IDLE)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let settings = SelectionSettings::try_new(json)?;
        let responses = match settings.algorithm {
            SelectionAlgorithm::ModelSwitching => Some(switching::read(&settings.responses)?),
            _ => None,
        };
        let apps = catalog
            .apps()
            .map(|app| AppSelector::new(catalog, app, responses.as_ref()));
        let apps = apps.collect::<Result<_, _>>()?;
        catalog.log_quality();
        Ok(Self { apps, settings })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        if window.is_empty() {
            return Ok(());
        }
        let Self { settings, apps } = self;
        // All apps share the workers, so each app's model must sustain the load of all.
        let ids = window.catalog().apps().map(|app| app.id);
        let seen: f64 = ids.map(|app| window.arrival_rate(app)).sum();
        let load_rps = settings.load_per_s.unwrap_or(seen);
        for app in apps.iter_mut() {
            app.choose(settings, load_rps);
        }
        let apps: &[AppSelector] = apps;
        let mut queues: Vec<_> = (0u32..)
            .map(AppId)
            .zip(apps)
            .map(|(id, app)| AppQueue {
                app,
                left: window.fresh_of(id).count(),
                waiting: window.fresh_of(id).peekable(),
            })
            .collect();
        let is_parked = window.any_parked();
        for worker in window.workers().filter(WorkerRef::is_idle) {
            // Parked requests first: only this worker has their activations.
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
            // The oldest request chooses the app.
            if let Some((_, batch, queue)) = able.min_by_key(|(oldest, ..)| *oldest) {
                let taken = queue.waiting.by_ref().take(batch.batch_max);
                queue.left -= plan.run(worker.id(), batch.variant).requests(taken);
            }
        }
        Ok(())
    }
}

// === impl AppSelector ===

impl AppSelector {
    fn new(catalog: &Catalog, app: App<'_>, responses: Option<&Responses>) -> Result<Self, String> {
        let ladders = menu::ladders(catalog, app.id);
        let menu = Menu::new(catalog, app.id, &ladders);
        let switching = match responses {
            Some(responses) => LoadSteps::new(catalog, app, &menu, responses)?,
            None => LoadSteps::default(),
        };
        Ok(Self {
            ladders,
            menu,
            switching,
            choice: None,
        })
    }

    /// Chooses the model of this window.
    fn choose(&mut self, settings: &SelectionSettings, load_rps: f64) {
        let Self {
            menu, switching, ..
        } = self;
        self.choice = match settings.algorithm {
            SelectionAlgorithm::Jellyfish => menu
                .sustaining(settings.headroom * settings.stepped(load_rps))
                .or(menu.fastest),
            SelectionAlgorithm::ModelSwitching => switching.at(load_rps),
            SelectionAlgorithm::Infaas => menu.accurate(settings.accuracy),
            SelectionAlgorithm::Greedy => None,
        };
    }

    /// The model and batch of a worker from a queue of `waiting` requests, the oldest of which is
    /// `first`.
    fn batch(
        &self,
        worker: WorkerId,
        first: RequestRef<'_>,
        waiting: usize,
    ) -> Option<ModelChoice> {
        let ladder = &self.ladders[worker.index()];
        let Some(choice) = self.choice else {
            let (rung, batch_max) = ladder.greedy(waiting, first.slack_us())?;
            return Some(ModelChoice {
                variant: rung.variant,
                batch_max,
            });
        };
        let largest = ladder.rung(choice.variant)?.batch_max();
        Some(ModelChoice {
            batch_max: choice.batch_max.min(largest),
            ..choice
        })
    }
}

export_policy!(Selection);

#[cfg(test)]
mod tests;
