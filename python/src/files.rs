//! Profiles and recordings for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyList;
use switchyard_profile::ProfileFile;
use switchyard_sim::workload::Recorded;
use switchyard_simulate::recorded::RecordedRows;

use crate::buffers;
use crate::error::{refused, wrong};

/// The checked text of a profile: as it is, so that every number keeps all of its digits.
#[pyfunction]
pub(crate) fn read_profile(path: PathBuf) -> PyResult<String> {
    ProfileFile::load(&path).map_err(refused)?;
    std::fs::read_to_string(&path).map_err(|error| wrong(&path.display().to_string(), error))
}

/// Checks the text of a profile and writes it.
#[pyfunction]
pub(crate) fn write_profile(path: PathBuf, json: &str) -> PyResult<()> {
    let profile = ProfileFile::from_json(&path, json).map_err(refused)?;
    profile.save(&path).map_err(refused)
}

/// Columns of windows, requests as JSON, and the number of windows that are missing.
#[pyfunction]
pub(crate) fn read_recording(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Bound<'_, PyList>, String, u64)> {
    let rows = py.detach(|| RecordedRows::read(&path)).map_err(refused)?;
    let requests = serde_json::to_string::<Vec<Recorded>>(&rows.requests).map_err(refused)?;
    Ok((buffers::columns(py, rows.windows)?, requests, rows.missing))
}
