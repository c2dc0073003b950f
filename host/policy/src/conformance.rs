//! What any policy must get through, whatever it is for: windows of every shape, the same
//! input twice, another catalog, its own state, and a small yard that it has to run.
//!
//! [`windows`] are made for any catalog, so that a server can try a new policy on its own as
//! well as on what it has recorded. [`examine`] does everything there is, on a catalog that
//! is made for it; [`advice`] says what to change in a policy that fails.

mod advice;
mod catalog;
mod examine;
mod moment;
mod windows;
mod yard;

pub use advice::advice;
pub use catalog::{catalog, changed_catalog};
pub use examine::{CheckPlan, Examination, Finding, WindowCost, check, examine};
pub use windows::{Case, window_of, windows};
