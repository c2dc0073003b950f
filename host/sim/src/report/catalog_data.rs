//! The catalog as reports carry it.

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::{Catalog, Exit};

/// Apps, variants and workers of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CatalogData {
    /// The apps.
    pub apps: Vec<AppData>,
    /// The variants of all apps; timelines name them by their position here.
    pub variants: Vec<VariantData>,
    /// The workers; timelines name them by their position here.
    pub workers: Vec<WorkerData>,
}

/// One app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppData {
    /// Its name.
    pub name: String,
    /// Its deadline in milliseconds, unless the workload gives another.
    pub slo_ms: f64,
    /// Number of its classes.
    pub classes: usize,
}

/// One variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantData {
    /// Its name.
    pub name: String,
    /// Its app.
    pub app: String,
    /// Most requests in a batch.
    pub batch_size_max: u32,
    /// Memory while it is resident, in bytes.
    pub memory_bytes: u64,
    /// Its exits; the last one answers every request that reaches it.
    pub exits: Vec<ExitData>,
}

/// One exit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExitData {
    /// Its name.
    pub name: String,
    /// Accuracy on the app's test set, 0 to 1.
    pub accuracy: f64,
}

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerData {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
}

// === impl CatalogData ===

impl CatalogData {
    /// The report's part of a catalog.
    pub fn of(catalog: &Catalog) -> Self {
        let apps = catalog.apps.iter().map(|app| AppData {
            name: app.name.clone(),
            slo_ms: app.slo.as_secs_f64() * 1e3,
            classes: app.classes.len(),
        });
        let workers = catalog.workers.iter().map(|worker| WorkerData {
            name: worker.name.clone(),
            kind: catalog.kinds[worker.kind.index()].clone(),
        });
        let variants = catalog.variants.iter().map(|variant| VariantData {
            name: variant.name.clone(),
            app: catalog.apps[variant.app.index()].name.clone(),
            batch_size_max: variant.max_batch,
            memory_bytes: variant.memory_bytes,
            exits: variant.exits.iter().map(ExitData::of).collect(),
        });
        Self {
            variants: variants.collect(),
            apps: apps.collect(),
            workers: workers.collect(),
        }
    }
}

// === impl VariantData ===

impl VariantData {
    /// Accuracy of its last exit, 0 to 1.
    pub(super) fn accuracy(&self) -> f64 {
        self.exits.last().map_or(0.0, |exit| exit.accuracy)
    }
}

// === impl ExitData ===

impl ExitData {
    fn of(exit: &Exit) -> Self {
        Self {
            name: exit.name.clone(),
            accuracy: exit.accuracy,
        }
    }
}
