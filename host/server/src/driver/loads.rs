//! Loads and unloads the models of apps while the pool runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::ids::{AppId, VariantId, WorkerId};
use switchyard_core::time::Time;
use switchyard_executor::{CacheError, LoadedModel, Preloaded, Refused};

use super::models::{AppModels, AppState, LoadEnd, WorkerModels};
use super::status::{ResidentStatus, WorkerStatus};
use super::turn::Driver;
use crate::readiness::Awaited;

// === impl Driver ===

impl Driver {
    /// Asks every worker for every variant that still fits, so that no client waits for a load.
    /// Pinned variants come first.
    pub(super) fn load_all(&mut self) {
        let catalog = Arc::clone(self.scheduler.catalog());
        for (worker, spec) in (0..).map(WorkerId).zip(&catalog.workers) {
            let pinned = self.held[worker.index()].pinned.clone();
            let rest = (0..catalog.variants.len() as u32).map(VariantId);
            let rest = rest.filter(|variant| !pinned.contains(variant));
            let mut left = spec.memory_bytes;
            for variant in pinned.iter().copied().chain(rest) {
                let bytes = catalog.variants[variant.index()].memory_bytes;
                if bytes <= left && self.ask_for(worker, variant) {
                    left -= bytes;
                }
            }
        }
        self.starting = true;
        self.started();
    }

    /// Makes an app's variants resident where there is room, and serves its requests.
    pub(super) fn load_app(&mut self, app: AppId, done: LoadEnd) {
        let Some(models) = self.models.get_mut(app.index()) else {
            let _ = done.send(Err("no such app".to_owned()));
            return;
        };
        let mut workers = (0..self.held.len() as u32).map(WorkerId);
        if !workers.any(|worker| self.scheduler.is_up(worker)) {
            let reason = "no worker is up: try again once the pool is ready";
            let _ = done.send(Err(reason.to_owned()));
            return;
        }
        models.waiting.push(done);
        if models.unloaded {
            models.unloaded = false;
            self.states.set(app, AppState::Loading);
        }
        let catalog = Arc::clone(self.scheduler.catalog());
        for (variant, known) in catalog.variants_of(app) {
            self.weights.forgive(variant);
            for (worker, spec) in (0..).map(WorkerId).zip(&catalog.workers) {
                if known.memory_bytes <= spec.memory_bytes {
                    self.ask_for(worker, variant);
                }
            }
        }
        self.loads_ended(app);
    }

    /// Lets an app's models go once its requests have ended.
    pub(super) fn unload_app(&mut self, app: AppId) {
        let Some(models) = self.models.get_mut(app.index()) else {
            return;
        };
        models.unloaded = true;
        tracing::info!(pool = self.name, app = self.app_name(app), "unloading");
        self.let_go(app);
    }

    /// A request was taken in.
    pub(super) fn came(&mut self, app: AppId) {
        if let Some(models) = self.models.get_mut(app.index()) {
            models.live += 1;
        }
    }

    /// A request has ended.
    pub(super) fn went(&mut self, app: AppId) {
        let Some(models) = self.models.get_mut(app.index()) else {
            return;
        };
        models.live = models.live.saturating_sub(1);
        if models.unloaded && models.live == 0 {
            self.let_go(app);
        }
    }

    /// A load outside of a batch has ended.
    pub(super) fn loaded(&mut self, now: Time, loaded: Preloaded) {
        let Preloaded {
            worker,
            variant,
            result,
            asked,
            residency,
        } = loaded;
        let mut error = None;
        match result {
            Ok(took) => {
                self.meters.loaded(worker, variant, took);
                self.states.shown().failed.remove(&variant);
            }
            // No mistake: the worker loads the variant when a batch needs it.
            Err(CacheError::NoRoom { .. } | CacheError::TooLarge { .. }) => {}
            // The loads of a lost worker have ended with it.
            Err(_) if !self.scheduler.is_up(worker) => {}
            Err(refused) => {
                let reason = refused.to_string();
                if !refused.is_repeated() {
                    tracing::error!(pool = self.name, worker = worker.0, reason, "not loaded");
                }
                let mut shown = self.states.shown();
                shown.failed.insert(variant, reason.clone());
                error = Some(reason);
            }
        }
        self.residency(now, worker, residency);
        let app = self.scheduler.catalog().variant(variant).map(|v| v.app);
        let held = self.held.get_mut(worker.index());
        let was_asked = asked && held.is_some_and(|held| held.asked.remove(&variant));
        if let (true, Some(app)) = (was_asked, app) {
            let models = &mut self.models[app.index()];
            models.loading = models.loading.saturating_sub(1);
            models.error = models.error.take().or(error);
            self.loads_ended(app);
        }
        self.started();
    }

    /// A worker has let go of a variant.
    pub(super) fn unloaded(&mut self, worker: WorkerId, variant: VariantId) {
        let held = self.held.get_mut(worker.index());
        let was_asked = held.is_some_and(|held| held.letting_go.remove(&variant));
        let app = self.scheduler.catalog().variant(variant).map(|v| v.app);
        let Some(app) = app.filter(|_| was_asked) else {
            return;
        };
        let models = &mut self.models[app.index()];
        models.unloading = models.unloading.saturating_sub(1);
        if models.unloading == 0 && models.unloaded && models.live == 0 {
            self.states.set(app, AppState::Unloaded);
            tracing::info!(pool = self.name, app = self.app_name(app), "unloaded");
        }
    }

    /// A worker is lost: the loads and unloads that it was asked for have no end.
    pub(super) fn loads_lost(&mut self, worker: WorkerId, reason: &str) {
        let Some(held) = self.held.get_mut(worker.index()) else {
            return;
        };
        let asked = std::mem::take(&mut held.asked);
        // A lost worker holds nothing.
        for variant in held.letting_go.clone() {
            self.unloaded(worker, variant);
        }
        let error = format!("worker {} was lost: {reason}", self.worker_name(worker));
        let catalog = Arc::clone(self.scheduler.catalog());
        for app in asked.iter().filter_map(|&v| Some(catalog.variant(v)?.app)) {
            let models = &mut self.models[app.index()];
            models.loading = models.loading.saturating_sub(1);
            models.error.get_or_insert_with(|| error.clone());
            self.loads_ended(app);
        }
        self.started();
    }

    /// A worker is back: asks it for its pinned models, and for those that it held.
    pub(super) fn load_again(&mut self, worker: WorkerId, before: &[VariantId]) {
        let catalog = Arc::clone(self.scheduler.catalog());
        let pinned = self.held[worker.index()].pinned.clone();
        let others = before.iter().filter(|variant| !pinned.contains(variant));
        for &variant in pinned.iter().chain(others) {
            let app = catalog.variant(variant).map(|v| v.app);
            if app.is_some_and(|app| !self.models[app.index()].unloaded) {
                self.ask_for(worker, variant);
            }
        }
    }

    /// Other weights of a variant serve from the next batch on.
    pub(super) fn replace(&mut self, variant: VariantId, models: &[Arc<LoadedModel>]) {
        self.states.shown().failed.remove(&variant);
        for (worker, model) in self.crew.iter().zip(models) {
            // Also of a worker that is not up: it serves again once its overdue batch has ended. One
            // whose thread has ended loads the new ones when it is back.
            if let Err(Refused::Full(_)) = worker.replace(variant, Arc::clone(model)) {
                let (pool, worker) = (&self.name, &worker.options().name);
                tracing::error!(
                    pool,
                    worker,
                    model = model.name,
                    "weights not replaced here"
                );
            }
        }
        self.started();
    }

    pub(super) fn worker_status(&self) -> Vec<WorkerStatus> {
        let catalog = self.scheduler.catalog();
        let workers = catalog.workers.iter().zip(&self.held);
        let resident = |held: &WorkerModels| {
            let variants = held.holds.resident.iter();
            let variants = variants.map(|&variant| ResidentStatus {
                variant: self.variant_name(variant),
                bytes: catalog.variant(variant).map_or(0, |v| v.memory_bytes),
                pinned: held.pinned.contains(&variant),
            });
            variants.collect::<Vec<_>>()
        };
        workers
            .zip((0..).map(WorkerId))
            .map(|((spec, held), id)| WorkerStatus {
                name: spec.name.clone(),
                up: self.scheduler.is_up(id),
                address: self.crew.address(id).map(Option::unwrap_or_default),
                memory_bytes: spec.memory_bytes,
                free_bytes: held.holds.free_bytes,
                resident: resident(held),
            })
            .collect()
    }

    pub(super) fn app_status(&self) -> BTreeMap<String, String> {
        let apps = self.scheduler.catalog().apps.iter().zip(0..);
        apps.map(|(app, a)| {
            let state = self.states.app(AppId(a));
            (app.name.clone(), state.label().to_owned())
        })
        .collect()
    }

    fn ask_for(&mut self, worker: WorkerId, variant: VariantId) -> bool {
        let Some(held) = self.held.get_mut(worker.index()) else {
            return false;
        };
        if held.asked.contains(&variant) {
            return true;
        }
        let app = self.scheduler.catalog().variant(variant).map(|v| v.app);
        // A lost worker loads its models when it is back.
        let is_up = self.scheduler.is_up(worker);
        let known = self.crew.get(worker).filter(|_| is_up);
        match (known.map(|known| known.preload(variant)), app) {
            (Some(Ok(())), Some(app)) => {
                held.asked.insert(variant);
                self.models[app.index()].loading += 1;
                true
            }
            _ => false,
        }
    }

    /// Answers the clients that wait for an app's loads, when the last load has ended.
    fn loads_ended(&mut self, app: AppId) {
        let models = &mut self.models[app.index()];
        if models.loading > 0 {
            return;
        }
        let error = models.error.take();
        let waiting = std::mem::take(&mut models.waiting);
        if self.states.app(app) == AppState::Loading {
            let state = match error {
                None => AppState::Ready,
                Some(_) => AppState::Unloaded,
            };
            models.unloaded = error.is_some();
            self.states.set(app, state);
        }
        for done in waiting {
            // An error means that the client has gone.
            let _ = done.send(error.clone().map_or(Ok(()), Err));
        }
    }

    fn let_go(&mut self, app: AppId) {
        if self.models[app.index()].live > 0 {
            return; // The last of its requests does this.
        }
        let catalog = Arc::clone(self.scheduler.catalog());
        for (variant, _) in catalog.variants_of(app) {
            self.weights.forget(variant);
            self.states.shown().failed.remove(&variant);
            for worker in (0..self.held.len() as u32).map(WorkerId) {
                self.ask_to_let_go(worker, app, variant);
            }
        }
        if self.models[app.index()].unloading == 0 {
            self.states.set(app, AppState::Unloaded);
        }
        self.started();
    }

    /// A worker serves again, without a restart, and holds its models: asks it to let go of those that
    /// were unloaded meanwhile.
    pub(super) fn let_go_late(&mut self, worker: WorkerId) {
        let catalog = Arc::clone(self.scheduler.catalog());
        for (id, variant) in (0..).zip(&catalog.variants) {
            let models = &self.models[variant.app.index()];
            if models.unloaded && models.live == 0 {
                self.ask_to_let_go(worker, variant.app, VariantId(id));
            }
        }
    }

    fn ask_to_let_go(&mut self, worker: WorkerId, app: AppId, variant: VariantId) {
        // A lost worker holds nothing, or is asked once it serves again.
        let is_up = self.scheduler.is_up(worker);
        let known = self.crew.get(worker).filter(|_| is_up);
        let (Some(known), Some(held)) = (known, self.held.get_mut(worker.index())) else {
            return;
        };
        if !held.letting_go.contains(&variant) && known.unload(variant).is_ok() {
            held.letting_go.insert(variant);
            self.models[app.index()].unloading += 1;
        }
    }

    /// Declares that the loads of the start have ended. A load that failed keeps its app from being
    /// ready, not the pool: the other apps serve.
    fn started(&mut self) {
        let loading = |models: &AppModels| models.loading > 0 && !models.unloaded;
        if self.starting && self.models.iter().any(loading) {
            return;
        }
        self.starting = false;
        self.readiness.arrived(Awaited::Models);
    }

    pub(super) fn failed_variants(&self) -> BTreeMap<String, String> {
        let shown = self.states.shown();
        let failed = shown.failed.iter();
        failed
            .map(|(&variant, reason)| (self.variant_name(variant), reason.clone()))
            .collect()
    }

    fn app_name(&self, app: AppId) -> &str {
        let known = self.scheduler.catalog().app(app);
        known.map_or("", |app| app.name.as_str())
    }

    fn variant_name(&self, variant: VariantId) -> String {
        let catalog = self.scheduler.catalog();
        let known = catalog.variant(variant);
        known.map_or_else(String::new, |v| {
            format!("{}/{}", self.app_name(v.app), v.name)
        })
    }
}
