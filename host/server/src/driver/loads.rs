//! Loads and unloads the models of apps while the pool runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::ids::{AppId, VariantId, WorkerId};
use switchyard_core::time::Time;
use switchyard_executor::{CacheError, LoadedModel, Preloaded};

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
        if let (true, Some(app)) = (asked, app) {
            let models = &mut self.models[app.index()];
            models.loading = models.loading.saturating_sub(1);
            models.error = models.error.take().or(error);
            self.loads_ended(app);
        }
        self.started();
    }

    /// A worker has let go of a variant.
    pub(super) fn unloaded(&mut self, variant: VariantId) {
        let Some(app) = self.scheduler.catalog().variant(variant).map(|v| v.app) else {
            return;
        };
        let models = &mut self.models[app.index()];
        models.unloading = models.unloading.saturating_sub(1);
        if models.unloading == 0 && models.unloaded && models.live == 0 {
            self.states.set(app, AppState::Unloaded);
            tracing::info!(pool = self.name, app = self.app_name(app), "unloaded");
        }
    }

    /// Other weights of a variant serve from the next batch on.
    pub(super) fn replace(&mut self, variant: VariantId, models: &[Arc<LoadedModel>]) {
        self.states.shown().failed.remove(&variant);
        for (worker, model) in self.workers.iter().zip(models) {
            if worker.replace(variant, Arc::clone(model)).is_err() {
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
            .map(|(spec, held)| WorkerStatus {
                name: spec.name.clone(),
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
        let worker = self.workers.get(worker.index());
        let asked = worker.map(|worker| worker.preload(variant));
        let app = self.scheduler.catalog().variant(variant).map(|v| v.app);
        match (asked, app) {
            (Some(Ok(())), Some(app)) => {
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
        let mut asked = 0;
        for (variant, _) in catalog.variants_of(app) {
            self.weights.forget(variant);
            self.states.shown().failed.remove(&variant);
            for worker in &self.workers {
                asked += usize::from(worker.unload(variant).is_ok());
            }
        }
        self.models[app.index()].unloading += asked;
        if asked == 0 {
            self.states.set(app, AppState::Unloaded);
        }
        self.started();
    }

    /// Declares the pool ready once it has its models: the loads of the start have ended, and no
    /// variant's last load failed.
    fn started(&mut self) {
        let loading = |models: &AppModels| models.loading > 0 && !models.unloaded;
        if self.starting && self.models.iter().any(loading) {
            return;
        }
        self.starting = false;
        // A model that fails to load is a mistake of the deployment: the pool is not ready, and
        // serves the other models.
        let failed = self.states.shown().failed.values().next().cloned();
        match failed {
            Some(reason) => self.readiness.wait_for(&self.name, Awaited::Models, reason),
            None => self.readiness.arrived(&self.name, Awaited::Models),
        }
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
