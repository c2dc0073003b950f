//! First come, first served: the smallest policy, and the one to copy.
//!
//! On each idle worker the oldest pending request chooses the app. The batch has the oldest
//! requests of that app, up to the largest profiled batch of the app's variant.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde::Deserialize;
use switchyard_sdk::{
    AppId, Catalog, Description, Events, PlanBuilder, Policy, Reason, RequestRef, VariantId,
    Window, WorkerId, export_policy, settings,
};

/// The policy's JSON. Unknown fields are refused, so that loading finds a misspelt name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FcfsSettings {
    /// App name to variant name; other apps run their most accurate variant.
    /// Range: names of the catalog.
    variants: BTreeMap<String, String>,
}

/// First come, first served.
#[derive(Debug)]
pub struct Fcfs {
    /// The variant of each app, by the app's position in the catalog; none for an app without
    /// variants.
    variants: Vec<Option<VariantId>>,
}

impl Policy for Fcfs {
    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        Description::new(
            "fcfs",
            version,
            "first come, first served, one variant per app",
        )
        .on(Events::WORKER_IDLE)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let FcfsSettings { variants: chosen } = settings::parse(json)?;
        if let Some(name) = chosen.keys().find(|name| catalog.app_named(name).is_none()) {
            return Err(format!("settings: variants.{name}: unknown app"));
        }
        let variants = catalog.apps().map(|app| match chosen.get(&app.name) {
            Some(name) => named(catalog, app.id, name).map(Some),
            None => Ok(most_accurate(catalog, app.id)),
        });
        Ok(Self {
            variants: variants.collect::<Result<_, _>>()?,
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        // Per app, the requests that are in no batch of this plan.
        let mut waiting: Vec<_> = window
            .catalog()
            .apps()
            .map(|app| window.fresh_of(app.id).peekable())
            .collect();
        let is_parked = window.any_parked();
        for worker in window.idle_workers() {
            // Mostly there are more idle workers than requests: stop early.
            if !is_parked && waiting.iter_mut().all(|queue| queue.peek().is_none()) {
                break;
            }
            // Requests that an earlier policy parked go first: only this worker has their
            // activations.
            if plan.resume_parked(worker.id()) > 0 {
                continue;
            }
            let catalog = window.catalog();
            let oldest = waiting
                .iter_mut()
                .zip(&self.variants)
                .filter_map(|(queue, &variant)| Some((queue, variant?)))
                .filter(|(_, variant)| catalog.can_run(worker.id(), *variant))
                .filter_map(|(queue, variant)| Some((queue.peek()?.index(), queue, variant)))
                .min_by_key(|(age_rank, ..)| *age_rank);
            if let Some((_, queue, variant)) = oldest {
                let waited_us = queue.peek().map_or(0, |request| request.age_us());
                let why = Reason::new("oldest").with("waited_us", waited_us);
                let batch = batch_of(queue, catalog, worker.id(), variant);
                plan.run(worker.id(), variant).because(why).requests(batch);
            }
        }
        Ok(())
    }
}

/// The oldest requests of one app, up to the largest profiled batch.
fn batch_of<'a>(
    queue: impl Iterator<Item = RequestRef<'a>>,
    catalog: &Catalog,
    worker: WorkerId,
    variant: VariantId,
) -> impl Iterator<Item = RequestRef<'a>> {
    let exit = catalog.variant(variant).last_exit();
    queue.take(catalog.latencies_us(worker, variant, exit).len())
}

fn most_accurate(catalog: &Catalog, app: AppId) -> Option<VariantId> {
    let variants = catalog.variants_of(app);
    variants
        .max_by(|a, b| a.quality().total_cmp(&b.quality()))
        .map(|variant| variant.id)
}

fn named(catalog: &Catalog, app: AppId, name: &str) -> Result<VariantId, String> {
    let found = catalog
        .variants_of(app)
        .find(|variant| variant.name == name);
    found.map(|variant| variant.id).ok_or_else(|| {
        let app = &catalog.app(app).name;
        format!("settings: variants.{app}: unknown variant {name}")
    })
}

export_policy!(Fcfs);

#[cfg(test)]
mod tests;
