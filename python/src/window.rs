//! A window and the catalog, as Python reads them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_core::window::Window;
use switchyard_sim::report::CatalogData;

use crate::error::{refused, wrong};

/// Apps, variants and workers of a run.
#[pyclass(frozen, name = "Catalog", module = "switchyard._native")]
pub(crate) struct CatalogView(Arc<Catalog>);

/// The window of one call of a policy.
#[pyclass(frozen, name = "Window", module = "switchyard._native")]
pub(crate) struct WindowView(Window);

impl CatalogView {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        Self(Arc::new(catalog.clone()))
    }
}

impl WindowView {
    pub(crate) fn new(window: &Window) -> Self {
        Self(window.clone())
    }
}

#[pymethods]
impl CatalogView {
    /// Apps, variants and workers as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&CatalogData::of(&self.0)).map_err(refused)
    }

    /// Microseconds of a batch of whole requests, as policies plan; none if the profile lacks it.
    fn latency_us(&self, worker: u32, variant: u32, exit: u32, batch: u32) -> Option<u64> {
        let (worker, variant) = (WorkerId(worker), VariantId(variant));
        let latency = self.0.latency(worker, variant, ExitId(exit), batch);
        latency.map(|latency| latency.0)
    }
}

#[pymethods]
impl WindowView {
    /// Counts up from 1.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    /// When it was opened.
    #[getter]
    fn now_us(&self) -> u64 {
        self.0.now.0
    }

    /// The type for numpy, and the values of a column.
    fn column<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        name: &str,
    ) -> PyResult<(&'static str, Bound<'py, PyByteArray>)> {
        let u8s = |values: &[u8]| Ok(("u1", PyByteArray::new(py, values)));
        let u32s = |values: &[u32]| Ok(("u4", PyByteArray::new(py, bytemuck::cast_slice(values))));
        let u64s = |values: &[u64]| Ok(("u8", PyByteArray::new(py, bytemuck::cast_slice(values))));
        let f32s = |values: &[f32]| Ok(("f4", PyByteArray::new(py, bytemuck::cast_slice(values))));
        let f64s = |values: &[f64]| Ok(("f8", PyByteArray::new(py, bytemuck::cast_slice(values))));
        let (requests, workers) = (&self.0.requests, &self.0.workers);
        let residents = self.0.residents.iter();
        match (table, name) {
            ("requests", "id") => u64s(&requests.id),
            ("requests", "app") => u32s(&requests.app),
            ("requests", "arrival_us") => u64s(&requests.arrival),
            ("requests", "deadline_us") => u64s(&requests.deadline),
            ("requests", "priority") => u32s(&requests.priority),
            ("requests", "min_accuracy") => f32s(&requests.min_accuracy),
            ("workers", "busy_until_us") => u64s(&workers.busy_until),
            ("workers", "free_at_us") => u64s(&workers.free_at),
            ("workers", "running_variant") => u32s(&workers.running_variant),
            ("workers", "queued") => u32s(&workers.queued),
            ("workers", "free_memory") => u64s(&workers.free_memory),
            ("workers", "up") => u8s(&workers.up),
            ("residents", "worker") => {
                u32s(&residents.map(|held| held.worker.0).collect::<Vec<_>>())
            }
            ("residents", "variant") => {
                u32s(&residents.map(|held| held.variant.0).collect::<Vec<_>>())
            }
            ("apps", "arrival_rate") => f64s(&self.0.arrival_rate),
            _ => Err(wrong("window", format!("has no column {table}.{name}"))),
        }
    }
}
