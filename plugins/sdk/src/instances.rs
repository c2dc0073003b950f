//! Model instances: a worker together with the one variant it serves. Policies that route
//! arrivals choose among these.

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::ids::{AppId, VariantId, WorkerId};
use crate::plan::{Lane, PlanBuilder};
use crate::sort::{sort_distinct, sort_short};
use crate::window::Window;

/// A worker and the variant that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The worker.
    pub worker: WorkerId,
    /// The variant, run to its last exit.
    pub variant: VariantId,
}

/// The instances of an app, in the order of their workers.
///
/// `named` gives the variant of each worker, as in a policy's setting `instances`. A worker that it
/// does not name, or names for another app, is no instance. If it is empty, the app's variants share
/// the workers evenly: the first workers serve the most accurate variant, the last ones the least
/// accurate.
///
/// # Errors
/// `settings: instances.WORKER: reason`: there is no such worker or variant, or the worker cannot
/// run it.
pub fn instances_of(
    catalog: &Catalog,
    app: AppId,
    named: &BTreeMap<String, String>,
) -> Result<Vec<Instance>, String> {
    if named.is_empty() {
        return Ok(shared(catalog, app));
    }
    let mut instances = Vec::new();
    for (worker_name, variant_name) in named {
        let wrong = |reason: String| format!("settings: instances.{worker_name}: {reason}");
        let worker = catalog.workers().find(|worker| worker.name == *worker_name);
        let worker = worker.ok_or_else(|| wrong("there is no such worker".to_owned()))?;
        let is_named = |name: &str| name == variant_name;
        if !catalog.variants().any(|variant| is_named(&variant.name)) {
            return Err(wrong(format!("there is no variant {variant_name}")));
        }
        let mut variants = catalog.variants_of(app);
        let Some(variant) = variants.find(|variant| is_named(&variant.name)) else {
            continue;
        };
        if !catalog.can_run(worker.id, variant.id) {
            return Err(wrong(format!("it cannot run {variant_name}")));
        }
        instances.push(Instance {
            worker: worker.id,
            variant: variant.id,
        });
    }
    sort_distinct(&mut instances, |a, b| a.worker < b.worker);
    Ok(instances)
}

fn shared(catalog: &Catalog, app: AppId) -> Vec<Instance> {
    let mut variants: Vec<_> = catalog.variants_of(app).collect();
    sort_short(&mut variants, |a, b| {
        b.quality().total_cmp(&a.quality()).is_lt()
    });
    let able = |worker: WorkerId| variants.iter().any(|v| catalog.can_run(worker, v.id));
    let workers: Vec<_> = catalog.workers().filter(|w| able(w.id)).collect();
    let instance = |(at, worker): (usize, &crate::catalog::WorkerSpec<'_>)| {
        let due = &variants[at * variants.len() / workers.len()];
        let mut wanted = [due].into_iter().chain(&variants);
        let variant = wanted.find(|variant| catalog.can_run(worker.id, variant.id))?;
        Some(Instance {
            worker: worker.id,
            variant: variant.id,
        })
    };
    workers.iter().enumerate().filter_map(instance).collect()
}

/// Dispatches an app's pending requests in batches of one to the instance that is free first. A
/// routed app has pending requests that arrived before its route, or at a worker that went away.
pub fn place_pending(
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
    app: AppId,
    instances: &[Instance],
) {
    let mut free_us: Vec<u64> = instances
        .iter()
        .map(|instance| window.worker(instance.worker).free_at_us())
        .collect();
    for request in window.fresh_of(app) {
        let open = (0..instances.len()).filter(|&i| plan.room(instances[i].worker) > 0);
        let Some(first) = open.min_by_key(|&i| free_us[i]) else {
            return;
        };
        let Instance { worker, variant } = instances[first];
        plan.run(worker, variant).requests([request]);
        free_us[first] += instances[first].alone_us(window.catalog());
    }
}

// === impl Instance ===

impl Instance {
    /// Latency of a batch of one, in microseconds.
    pub fn alone_us(self, catalog: &Catalog) -> u64 {
        let exit = catalog.variant(self.variant).last_exit();
        let alone = catalog.latency_us(self.worker, self.variant, exit, 1);
        alone.unwrap_or(u64::MAX / 2)
    }

    /// A lane that leads here, one request at a time.
    pub fn lane(self, catalog: &Catalog, weight: f64, capacity: u32) -> Lane {
        Lane {
            worker: self.worker,
            variant: self.variant,
            exit: catalog.variant(self.variant).last_exit(),
            weight,
            min_batch: 1,
            max_batch: 1,
            capacity,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{CatalogBuilder, WindowBuilder};
    use crate::window::Index;

    fn catalog(workers: usize) -> Catalog {
        let builder = CatalogBuilder::new()
            .app("image", &["x"])
            .variant("light", &[0.7])
            .latency(0, 10_000)
            .variant("heavy", &[0.8])
            .latency(0, 40_000)
            .app("other", &["x"])
            .variant("apart", &[0.5])
            .latency(0, 1_000);
        let named = (0..workers).fold(builder, |b, at| b.worker(&format!("w{at}")));
        named.build()
    }

    fn variants(workers: usize, named: &[(&str, &str)]) -> Result<Vec<(u32, u32)>, String> {
        let named = named.iter().map(|&(w, v)| (w.to_owned(), v.to_owned()));
        let found = instances_of(&catalog(workers), AppId(0), &named.collect())?;
        Ok(found.iter().map(|i| (i.worker.0, i.variant.0)).collect())
    }

    #[test]
    fn without_names_the_variants_share_the_workers() {
        assert_eq!(variants(4, &[]).unwrap(), [(0, 1), (1, 1), (2, 0), (3, 0)]);
        assert_eq!(variants(3, &[]).unwrap(), [(0, 1), (1, 1), (2, 0)]);
        assert_eq!(variants(1, &[]).unwrap(), [(0, 1)]);
        assert_eq!(variants(0, &[]).unwrap(), []);
    }

    #[test]
    fn names_give_each_worker_its_variant() {
        let named = [("w2", "heavy"), ("w0", "light"), ("w1", "apart")];
        assert_eq!(variants(3, &named).unwrap(), [(0, 0), (2, 1)]);
        let error = variants(1, &[("w9", "light")]).unwrap_err();
        assert_eq!(error, "settings: instances.w9: there is no such worker");
        let error = variants(1, &[("w0", "huge")]).unwrap_err();
        assert_eq!(error, "settings: instances.w0: there is no variant huge");
    }

    #[test]
    fn pending_requests_go_to_the_instance_that_is_free_first() {
        let catalog = catalog(2);
        let window = WindowBuilder::new(&catalog)
            .busy(0, 1, 15_000)
            .requests(4, "image")
            .build();
        let mut index = Index::default();
        index.fill(&catalog, &window).unwrap();
        let window = Window::new(&catalog, &window, &index);
        let mut plan = PlanBuilder::new(window);
        let instances = instances_of(&catalog, AppId(0), &BTreeMap::new()).unwrap();
        place_pending(&window, &mut plan, AppId(0), &instances);
        let plan = plan.finish();
        // Free after 0 and 10 ms at worker 1, 15 ms at worker 0, then 20 ms at worker 1.
        let workers: Vec<u32> = plan.dispatches.iter().map(|d| d.worker).collect();
        assert_eq!(workers, [1, 1, 0, 1]);
    }
}
