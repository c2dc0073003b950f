//! The catalog, as Python reads it: the fields of the contract, with units in their names.

use std::sync::Arc;

use pyo3::prelude::*;
use serde::Serialize;
use switchyard_core::catalog::{App, Capabilities, Catalog, Penalty, Task, Variant, WorkerSpec};
use switchyard_core::ids::{ExitId, VariantId, WorkerId};

use crate::error::refused;

/// Apps, variants and workers of a run.
#[pyclass(frozen, name = "Catalog", module = "switchyard._native")]
pub(crate) struct CatalogView(Arc<Catalog>);

#[derive(Serialize)]
struct CatalogFields<'a> {
    apps: Vec<AppFields<'a>>,
    variants: Vec<VariantFields<'a>>,
    workers: Vec<WorkerFields<'a>>,
    kinds: &'a [String],
    percentile: f64,
}

#[derive(Serialize)]
struct AppFields<'a> {
    name: &'a str,
    task: Task,
    classes: &'a [String],
    slo_ms: f64,
    penalty: Penalty,
    prior: &'a [f64],
    frequencies: &'a [f64],
    sneakpeek: Option<SneakpeekFields<'a>>,
    drops_late: bool,
}

#[derive(Serialize)]
struct SneakpeekFields<'a> {
    neighbours: u32,
    accuracy: f64,
    recall: &'a [f64],
}

#[derive(Serialize)]
struct VariantFields<'a> {
    name: &'a str,
    app: &'a str,
    stages: u32,
    exits: Vec<ExitFields<'a>>,
    memory_bytes: u64,
    batch_size_max: u32,
}

#[derive(Serialize)]
struct ExitFields<'a> {
    name: &'a str,
    after_stage: u32,
    /// None: unknown.
    accuracy: Option<f64>,
    recall: &'a [f64],
}

#[derive(Serialize)]
struct WorkerFields<'a> {
    name: &'a str,
    kind: &'a str,
    memory_bytes: u64,
    queue_max: u32,
    parked_max: u32,
    can: Vec<&'static str>,
    transfer_us: u64,
}

#[derive(Serialize)]
struct ProfileFields {
    kind: u32,
    variant: u32,
    from_stage: u32,
    to_stage: u32,
    exit: Option<u32>,
    batch: u32,
    latency_us: u64,
    energy_uj: Option<u64>,
}

#[derive(Serialize)]
struct LoadFields {
    kind: u32,
    variant: u32,
    latency_us: u64,
}

#[pymethods]
impl CatalogView {
    /// Apps, variants, workers and kinds of workers as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&CatalogFields::of(&self.0)).map_err(refused)
    }

    /// The latencies of the profile as JSON.
    fn profile_json(&self) -> PyResult<String> {
        let rows = self.0.profile.rows().map(|row| ProfileFields {
            kind: row.kind.0,
            variant: row.variant.0,
            from_stage: row.from_stage,
            to_stage: row.to_stage,
            exit: row.exit.map(|exit| exit.0),
            batch: row.batch,
            latency_us: row.latency.0,
            energy_uj: row.energy_uj,
        });
        serde_json::to_string(&rows.collect::<Vec<_>>()).map_err(refused)
    }

    /// The load times of the profile as JSON.
    fn loads_json(&self) -> PyResult<String> {
        let rows = self.0.profile.loads().map(|row| LoadFields {
            kind: row.kind.0,
            variant: row.variant.0,
            latency_us: row.latency.0,
        });
        serde_json::to_string(&rows.collect::<Vec<_>>()).map_err(refused)
    }

    /// Microseconds of a batch through the stages and the head of the exit, as policies plan; without an exit
    /// the requests are parked. None if the profile lacks it.
    fn latency_us(
        &self,
        worker: u32,
        variant: u32,
        from_stage: u32,
        to_stage: u32,
        exit: Option<u32>,
        batch: u32,
    ) -> Option<u64> {
        let kind = self.0.worker(WorkerId(worker))?.kind;
        let (variant, exit) = (VariantId(variant), exit.map(ExitId));
        let profile = &self.0.profile;
        let latency = profile.latency(kind, variant, from_stage, to_stage, exit, batch);
        latency.map(|latency| latency.0)
    }
}

impl CatalogView {
    pub(crate) fn of(catalog: Arc<Catalog>) -> Self {
        Self(catalog)
    }
}

// === impl CatalogFields ===

impl<'a> CatalogFields<'a> {
    fn of(catalog: &'a Catalog) -> Self {
        let variants = catalog.variants.iter();
        let workers = catalog.workers.iter();
        Self {
            apps: catalog.apps.iter().map(AppFields::of).collect(),
            variants: variants
                .map(|variant| VariantFields::of(variant, &catalog.apps[variant.app.index()]))
                .collect(),
            workers: workers
                .map(|worker| WorkerFields::of(worker, &catalog.kinds[worker.kind.index()]))
                .collect(),
            kinds: &catalog.kinds,
            percentile: catalog.profile.percentile(),
        }
    }
}

// === impl AppFields ===

impl<'a> AppFields<'a> {
    fn of(app: &'a App) -> Self {
        let classifies = app.task.is_classify();
        let sneakpeek = app.sneakpeek.as_ref().filter(|_| classifies);
        Self {
            name: &app.name,
            task: app.task,
            classes: if classifies { &app.classes } else { &[] },
            slo_ms: app.slo.as_secs_f64() * 1e3,
            penalty: app.penalty,
            prior: if classifies { &app.prior } else { &[] },
            frequencies: if classifies { &app.frequencies } else { &[] },
            sneakpeek: sneakpeek.map(|model| SneakpeekFields {
                neighbours: model.neighbours,
                accuracy: model.accuracy,
                recall: &model.recall,
            }),
            drops_late: app.late.drops(),
        }
    }
}

// === impl VariantFields ===

impl<'a> VariantFields<'a> {
    fn of(variant: &'a Variant, app: &'a App) -> Self {
        let exits = (0..).map(ExitId).zip(&variant.exits);
        let exits = exits.map(|(id, exit)| ExitFields {
            name: &exit.name,
            after_stage: exit.after_stage,
            accuracy: variant.quality(id),
            recall: if app.task.is_classify() {
                &exit.recall
            } else {
                &[]
            },
        });
        Self {
            name: &variant.name,
            app: &app.name,
            stages: variant.stages,
            exits: exits.collect(),
            memory_bytes: variant.memory_bytes,
            batch_size_max: variant.max_batch,
        }
    }
}

// === impl WorkerFields ===

impl<'a> WorkerFields<'a> {
    fn of(worker: &'a WorkerSpec, kind: &'a str) -> Self {
        Self {
            name: &worker.name,
            kind,
            memory_bytes: worker.memory_bytes,
            queue_max: worker.queue_max,
            parked_max: worker.parked_max,
            can: capabilities(worker.can),
            transfer_us: worker.transfer.0,
        }
    }
}

fn capabilities(can: Capabilities) -> Vec<&'static str> {
    let named = [
        (can.stage_ranges, "stage-ranges"),
        (can.exits, "exits"),
        (can.parking, "parking"),
    ];
    let held = named.into_iter().filter(|(holds, _)| *holds);
    held.map(|(_, name)| name).collect()
}
