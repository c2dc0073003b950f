//! The instances of the weights, in a catalog.

use ppo_router_net::Meta;
use switchyard_sdk::instances::{Instance, instances_of};
use switchyard_sdk::{AppId, Catalog, Lane, VariantId};

use crate::settings::PpoRouterSettings;

/// The routed app with its instances.
#[derive(Clone, Debug)]
pub(crate) struct RoutedInstances {
    pub(crate) app: AppId,
    /// In the order of the network's outputs.
    pub(crate) instances: Vec<Instance>,
    /// Requests that an instance holds, with those in service, c.
    capacity: u32,
    /// Per model, the batch bounds if the weights have none.
    pub(crate) bounds: Vec<(u32, u32)>,
}

// === impl RoutedInstances ===

impl RoutedInstances {
    /// Matches the weights with a catalog.
    ///
    /// # Errors
    /// The catalog or the setting `instances` does not match the weights.
    pub(crate) fn of(
        catalog: &Catalog,
        meta: &Meta,
        settings: &PpoRouterSettings,
    ) -> Result<Self, String> {
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
            format!("settings: instances: must have a worker for each of {trained}, as the weights")
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

    /// A lane to an instance. The contract counts requests in service separately, so its capacity
    /// is c less the largest batch, as in the training.
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

/// The first app with all variants of the weights, and its variant per model.
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

/// Assigns each instance to the next worker that can run it.
fn in_turn(catalog: &Catalog, wanted: &[VariantId]) -> Option<Vec<Instance>> {
    let mut workers = catalog.workers().map(|worker| worker.id);
    let instance = |&variant: &VariantId| {
        let worker = workers.find(|&worker| catalog.can_run(worker, variant))?;
        Some(Instance { worker, variant })
    };
    wanted.iter().map(instance).collect()
}

/// Assigns each instance to the first free worker with its variant.
fn matched(mut named: Vec<Instance>, wanted: &[VariantId]) -> Option<Vec<Instance>> {
    let instance = |variant: &VariantId| {
        let at = named.iter().position(|i| i.variant == *variant)?;
        Some(named.remove(at))
    };
    let instances: Option<Vec<_>> = wanted.iter().map(instance).collect();
    instances.filter(|_| named.is_empty())
}

/// The batch bounds of each model from the settings; by default (1, 1).
fn bounds_of(meta: &Meta, settings: &PpoRouterSettings) -> Result<Vec<(u32, u32)>, String> {
    let mut bounds = vec![(1, 1); meta.variants.len()];
    for (name, &[min, max]) in &settings.batches {
        let wrong = |reason: &str| Err(format!("settings: batches.{name}: {reason}"));
        if !meta.batches.is_empty() {
            return wrong("must be absent: the weights choose batches");
        }
        match meta.variants.iter().position(|variant| variant == name) {
            Some(model) => bounds[model] = (min, max),
            None => return wrong("unknown variant of the weights"),
        }
    }
    Ok(bounds)
}

/// Checks that the profile covers the largest batches.
fn check_batches(
    catalog: &Catalog,
    meta: &Meta,
    bounds: &[(u32, u32)],
    instances: &[Instance],
) -> Result<(), String> {
    for (instance, &model) in instances.iter().zip(&meta.models) {
        let (largest, source) = match meta.batches.last() {
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
            let reason = format!("is {largest}, but {name} takes at most {known}");
            return Err(format!("{source}: batches: {reason}"));
        }
    }
    Ok(())
}
