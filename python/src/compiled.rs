//! Compiled components, kept between calls.

use pyo3::prelude::*;
use switchyard_simulate::contenders::PolicyLoader;

use crate::error::refused;

/// Compiled components, by their contents.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct CompiledPolicies(pub(crate) PolicyLoader);

#[pymethods]
impl CompiledPolicies {
    #[new]
    fn new() -> PyResult<Self> {
        let loader = PolicyLoader::try_new().map_err(refused)?;
        Ok(Self(loader))
    }
}
