//! The instances that weights were trained for, in a catalog.

use ppo_router_net::Meta;
use switchyard_sdk::instances::{Instance, instances_of};
use switchyard_sdk::{AppId, Catalog, Lane, VariantId};

use crate::settings::Settings;

/// The app that is routed, and its instances.
#[derive(Clone, Debug)]
pub(crate) struct Yard {
    pub(crate) app: AppId,
    /// In the order of the network's outputs.
    pub(crate) instances: Vec<Instance>,
    /// Requests that each holds, those in service included, c.
    capacity: u32,
    /// By model, the bounds of batches where the weights choose none.
    pub(crate) bounds: Vec<(u32, u32)>,
}

// === impl Yard ===

impl Yard {
    /// # Errors
    /// The catalog is not what the weights were trained for, or the setting `instances` is not.
    pub(crate) fn of(catalog: &Catalog, meta: &Meta, settings: &Settings) -> Result<Self, String> {
        let (app, variants) = app_of(catalog, meta)?;
        let wanted: Vec<VariantId> = meta
            .models
            .iter()
            .map(|&model| variants[model as usize])
            .collect();
        let instances = match settings.instances.is_empty() {
            true => in_turn(catalog, &wanted),
            false => {
                let named = instances_of(catalog, app, &settings.instances)?;
                matched(named, &wanted)
            }
        };
        let instances = instances.ok_or_else(|| {
            let name = |&variant: &VariantId| catalog.variant(variant).name.clone();
            let names: Vec<String> = wanted.iter().map(name).collect();
            let trained = names.join(", ");
            format!("settings: instances: the weights were trained for {trained}, a worker each")
        })?;
        let bounds = bounds_of(meta, settings)?;
        check_batches(catalog, meta, &bounds, &instances)?;
        Ok(Self {
            app,
            instances,
            bounds,
            capacity: meta.layout.capacity as u32,
        })
    }

    /// A lane to an instance, with these bounds of its batches. The contract counts those in
    /// service apart from those that wait: the largest batch, as when the weights were trained.
    pub(crate) fn lane(&self, catalog: &Catalog, at: usize, share: f64, batch: (u32, u32)) -> Lane {
        let (min_batch, max_batch) = batch;
        let waiting = self.capacity.saturating_sub(max_batch).max(min_batch);
        Lane {
            min_batch,
            max_batch,
            ..self.instances[at].lane(catalog, share, waiting)
        }
    }
}

/// The first app with all the variants that the weights know, and these by model.
fn app_of(catalog: &Catalog, meta: &Meta) -> Result<(AppId, Vec<VariantId>), String> {
    let of_app = |app: AppId| {
        let find = |name: &String| {
            let mut variants = catalog.variants_of(app);
            variants.find(|v| v.name == *name).map(|v| v.id)
        };
        let variants: Option<Vec<_>> = meta.variants.iter().map(find).collect();
        variants.map(|variants| (app, variants))
    };
    let found = catalog.apps().find_map(|app| of_app(app.id));
    found.ok_or_else(|| {
        let names = meta.variants.join(", ");
        format!("weights: metadata: variants: no app has {names}")
    })
}

/// Every instance the next worker that can run it.
fn in_turn(catalog: &Catalog, wanted: &[VariantId]) -> Option<Vec<Instance>> {
    let mut workers = catalog.workers().map(|worker| worker.id);
    let instance = |&variant: &VariantId| {
        let worker = workers.find(|&worker| catalog.can_run(worker, variant))?;
        Some(Instance { worker, variant })
    };
    wanted.iter().map(instance).collect()
}

/// Every instance the first worker that serves its variant and is not taken.
fn matched(mut named: Vec<Instance>, wanted: &[VariantId]) -> Option<Vec<Instance>> {
    let instance = |variant: &VariantId| {
        let at = named.iter().position(|i| i.variant == *variant)?;
        Some(named.remove(at))
    };
    let instances: Option<Vec<_>> = wanted.iter().map(instance).collect();
    instances.filter(|_| named.is_empty())
}

/// What the settings say of each model's batches; of one request where they say nothing.
fn bounds_of(meta: &Meta, settings: &Settings) -> Result<Vec<(u32, u32)>, String> {
    let mut bounds = vec![(1, 1); meta.variants.len()];
    for (name, &[min, max]) in &settings.batches {
        let wrong = |reason: &str| Err(format!("settings: batches.{name}: {reason}"));
        if !meta.batches.is_empty() {
            return wrong("the weights choose them");
        }
        match meta.variants.iter().position(|variant| variant == name) {
            Some(model) => bounds[model] = (min, max),
            None => return wrong("the weights are for no such variant"),
        }
    }
    Ok(bounds)
}

/// Batches that there may be must be ones that the workers know.
fn check_batches(
    catalog: &Catalog,
    meta: &Meta,
    bounds: &[(u32, u32)],
    instances: &[Instance],
) -> Result<(), String> {
    for (instance, &model) in instances.iter().zip(&meta.models) {
        let (largest, whose) = match meta.batches.last() {
            Some(&largest) => (largest, "weights: metadata"),
            None => (bounds[model as usize].1, "settings"),
        };
        let variant = catalog.variant(instance.variant);
        let exit = variant.last_exit();
        let known = catalog
            .latencies_us(instance.worker, variant.id, exit)
            .len();
        if known < largest as usize {
            let name = &variant.name;
            let reason = format!("{largest} requests are more than a batch of {name}, {known}");
            return Err(format!("{whose}: batches: {reason}"));
        }
    }
    Ok(())
}
