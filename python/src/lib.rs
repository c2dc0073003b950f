//! The native part of the Python module `switchyard`: runs simulations without the interpreter's lock and
//! hands over results as buffers. Everything that a user of the module sees is in `python/switchyard`.
//!
//! - `options`: the inputs, from Python; `compiled`: components, kept between calls; `simulation`: runs and
//!   their results
//! - `policy`: policies in Python; `stepped`: runs that Python decides; `environments`, `router`: runs for
//!   Gymnasium, all in `slots`; `catalog`, `window`, `plan`: inputs and decisions
//! - `files`: profiles and recordings
//! - `buffers`: columns for Python; `error`: the module's exception; `interrupt`: Ctrl-C

#![forbid(unsafe_code)]

mod buffers;
mod catalog;
mod compiled;
mod environments;
mod error;
mod files;
mod interrupt;
mod options;
mod plan;
mod policy;
mod router;
mod simulation;
mod slots;
mod stepped;
mod window;

use pyo3::prelude::*;

/// The module `switchyard._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<compiled::CompiledPolicies>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<environments::Environments>()?;
    module.add_class::<router::Routers>()?;
    module.add_class::<stepped::SteppedRun>()?;
    module.add_class::<catalog::CatalogView>()?;
    module.add_class::<window::WindowView>()?;
    module.add_function(wrap_pyfunction!(files::read_profile, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_profile, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_recording, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::reference_profile, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::simulate, module)?)
}
