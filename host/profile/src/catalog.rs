//! A catalog made from a profile alone, to simulate an imported profile with.

use std::collections::BTreeMap;

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, KindId};
use switchyard_core::time::Micros;

use crate::error::ProfileError;
use crate::percentile::Percentile;
use crate::schema::{AccuracyCell, ProfileFile};
use crate::table::CatalogNames;

/// The one class of an app whose profile has accuracies and no classes.
const ANY_CLASS: &str = "any";

/// Batches that may wait on each worker; no configuration sets it.
const QUEUE_MAX: u32 = 8;

/// Jeffreys' prior.
const PRIOR: f64 = 0.5;

// === impl ProfileFile ===

impl ProfileFile {
    /// Whether it brings its own apps, so that it needs neither a configuration nor a zoo.
    pub fn has_apps(&self) -> bool {
        !self.apps.is_empty()
    }

    /// Its apps and variants, and one worker of each of its kinds. Requests have one class, which
    /// each exit recognises with the probability that is its accuracy; a late answer is worth
    /// nothing.
    ///
    /// # Errors
    /// A variant has no app, no latency of an exit from the first stage, or no accuracy.
    pub fn to_catalog(&self, percentile: Percentile) -> Result<Catalog, ProfileError> {
        let apps: Vec<App> = self
            .apps
            .iter()
            .map(|app| app_of(&app.name, app.slo_us))
            .collect();
        let mut kinds: Vec<String> = Vec::new();
        let mut variants: Vec<Variant> = Vec::new();
        for model in &self.models {
            if !kinds.contains(&model.kind) {
                kinds.push(model.kind.clone());
            }
            let Some(app) = apps.iter().position(|app| app.name == model.app) else {
                let cell = format!("app {} of variant {}", model.app, model.variant);
                return Err(ProfileError::Missing { cell });
            };
            let app = AppId(app as u32);
            let is_new = |variant: &Variant| (variant.app, &variant.name) != (app, &model.variant);
            if variants.iter().all(is_new) {
                let variant = (model.app.as_str(), model.variant.as_str());
                variants.push(self.variant_of(app, variant, model.memory_bytes)?);
            }
        }
        let names = CatalogNames {
            kinds: &kinds,
            apps: &apps,
            variants: &variants,
        };
        let profile = self.to_core(names, percentile)?;
        let workers = (0..)
            .map(KindId)
            .zip(&kinds)
            .map(|(kind, name)| WorkerSpec {
                name: name.clone(),
                kind,
                memory_bytes: u64::MAX,
                queue_max: QUEUE_MAX,
                parked_max: 0,
                can: Capabilities::ALL,
                transfer: Micros::ZERO,
                outstanding: 1,
            });
        Ok(Catalog {
            generation: 1,
            workers: workers.collect(),
            apps,
            variants,
            kinds,
            profile,
        })
    }

    fn variant_of(
        &self,
        app: AppId,
        (app_name, name): (&str, &str),
        memory_bytes: u64,
    ) -> Result<Variant, ProfileError> {
        let from_first_stage = self
            .latencies
            .iter()
            .filter(|cell| (&*cell.app, &*cell.variant, cell.from_stage) == (app_name, name, 0));
        let mut exits = BTreeMap::new();
        let mut batches = BTreeMap::<&str, u32>::new();
        for cell in from_first_stage {
            if let Some(exit) = &cell.exit {
                exits.insert(cell.to_stage, exit.as_str());
                let largest = batches.entry(&cell.kind).or_default();
                *largest = cell.batch.max(*largest);
            }
        }
        let missing = |cell: &str| ProfileError::Missing {
            cell: format!("variant {app_name}/{name}, {cell}"),
        };
        let (Some(&stages), Some(&max_batch)) = (exits.keys().last(), batches.values().min())
        else {
            return Err(missing("any exit from the first stage"));
        };
        let exits = exits.into_iter().map(|(after_stage, exit)| {
            let is_it = |cell: &&AccuracyCell| {
                (&*cell.app, &*cell.variant, &*cell.exit) == (app_name, name, exit)
            };
            let known = self.accuracies.iter().find(is_it);
            let known = known.ok_or_else(|| missing(&format!("accuracy of exit {exit}")))?;
            Ok(Exit {
                name: exit.to_owned(),
                after_stage,
                accuracy: known.accuracy,
                recall: vec![known.accuracy],
                confusion: None,
            })
        });
        Ok(Variant {
            name: name.to_owned(),
            app,
            stages,
            exits: exits.collect::<Result<_, ProfileError>>()?,
            memory_bytes,
            max_batch,
            quality_unknown: false,
        })
    }
}

fn app_of(name: &str, slo_us: u64) -> App {
    App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec![ANY_CLASS.to_owned()],
        slo: Micros(slo_us),
        penalty: Penalty::Step,
        prior: vec![PRIOR],
        frequencies: vec![1.0],
        sneakpeek: None,
        late: Late::Serve,
    }
}
