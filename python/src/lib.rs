//! The native part of the Python module `switchyard`: runs simulations without the interpreter's lock and
//! hands over results as buffers. Everything that a user of the module sees is in `python/switchyard`.
//!
//! - [`options`]: the inputs, from Python; [`simulation`]: runs and their results
//! - [`buffers`]: columns for Python; [`error`]: the module's exception; [`interrupt`]: Ctrl-C

#![forbid(unsafe_code)]

mod buffers;
mod error;
mod interrupt;
mod options;
mod simulation;

use pyo3::prelude::*;

/// The module `switchyard._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<simulation::Simulation>()?;
    module.add_function(wrap_pyfunction!(simulation::reference_profile, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::simulate, module)?)
}
