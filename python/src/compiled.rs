//! Compiled components, kept between calls.

use std::sync::Arc;

use pyo3::prelude::*;
use switchyard_simulate::contenders::PolicyLoader;

use crate::error::refused;

/// Compiled components, by their contents.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct CompiledPolicies(pub(crate) Arc<PolicyLoader>);

#[pymethods]
impl CompiledPolicies {
    #[new]
    fn new() -> PyResult<Self> {
        let loader = PolicyLoader::try_new().map_err(refused)?;
        Ok(Self(Arc::new(loader)))
    }
}
