//! The examination that any policy must pass, for any purpose: windows of every shape, the same
//! input twice, a changed catalog, its own state, and a simulated run.
//!
//! - [`examine`]: all of it, under the limits of a loader, on the made windows and catalogs of
//!   [`switchyard_policy::trial`]
//! - `run`: the simulated run, on the workers of `switchyard-sim`
//! - [`advice`]: the likely cause of a failure, and the change that mends it
//!
//! Plans are checked by the core ([`switchyard_core::plan::check_window`]).

#![forbid(unsafe_code)]

mod advice;
mod cost;
mod examine;
mod run;

pub use advice::advice;
pub use cost::WindowCost;
pub use examine::{Examination, Finding, examine};
