//! The instances of an app, heavy and light.

use switchyard_sdk::instances::{Instance, instances_of};
use switchyard_sdk::{AppId, Catalog, VariantId};

use crate::settings::{RoutingAlgorithm, RoutingSettings};

/// An app's instances, in the order of their workers.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) app: AppId,
    instances: Vec<Instance>,
    /// Per instance, whether it serves the most accurate variant of the fleet and others do not.
    heavy: Vec<bool>,
    /// Per instance, the latency of one request.
    alone_us: Vec<u64>,
}

// === impl Fleet ===

impl Fleet {
    /// The fleet of an app.
    ///
    /// # Errors
    /// The setting `instances` names an unknown worker or variant.
    pub(crate) fn of(
        catalog: &Catalog,
        app: AppId,
        settings: &RoutingSettings,
    ) -> Result<Self, String> {
        let instances = match settings.algorithm {
            RoutingAlgorithm::Lw => everywhere(catalog, app, false),
            RoutingAlgorithm::Hw | RoutingAlgorithm::HwE => everywhere(catalog, app, true),
            _ => instances_of(catalog, app, &settings.instances)?,
        };
        let accuracy = |instance: &Instance| catalog.variant(instance.variant).quality();
        let accuracies: Vec<f64> = instances.iter().map(accuracy).collect();
        let best = accuracies.iter().copied().fold(0.0, f64::max);
        let is_mixed = accuracies.iter().any(|&accuracy| accuracy < best);
        let heavy = accuracies
            .iter()
            .map(|&accuracy| is_mixed && accuracy >= best);
        Ok(Self {
            app,
            heavy: heavy.collect(),
            alone_us: instances.iter().map(|i| i.alone_us(catalog)).collect(),
            instances,
        })
    }

    pub(crate) fn instances(&self) -> &[Instance] {
        &self.instances
    }

    pub(crate) fn len(&self) -> usize {
        self.instances.len()
    }

    pub(crate) fn is_heavy(&self, at: usize) -> bool {
        self.heavy[at]
    }

    /// Latency of one request on an instance, in microseconds.
    pub(crate) fn alone_us(&self, at: usize) -> u64 {
        self.alone_us[at]
    }

    /// Indices of the heavy or of the light instances.
    pub(crate) fn group(&self, heavy: bool) -> Vec<usize> {
        (0..self.len())
            .filter(|&at| self.heavy[at] == heavy)
            .collect()
    }
}

/// The app's most or least accurate variant on every worker that can run it.
fn everywhere(catalog: &Catalog, app: AppId, most: bool) -> Vec<Instance> {
    let accuracy = |variant: &VariantId| catalog.variant(*variant).quality();
    let variants = catalog.app(app).variants().iter().copied();
    let by_accuracy = |a: &VariantId, b: &VariantId| accuracy(a).total_cmp(&accuracy(b));
    let chosen = match most {
        true => variants.max_by(by_accuracy),
        false => variants.min_by(by_accuracy),
    };
    let Some(variant) = chosen else {
        return Vec::new();
    };
    let workers = catalog.workers().map(|worker| worker.id);
    let able = workers.filter(|&worker| catalog.can_run(worker, variant));
    able.map(|worker| Instance { worker, variant }).collect()
}
