//! RAMSIS offline: for an app's profile, deadline and workers, one table per load that says which
//! variant to run on how many requests, and what that promises.
//!
//! [`Generator`] makes one table at a time and can be told to stop, for a server that needs one
//! more in the background; [`prepare`] makes a folder of them. The method is in README.md, paper
//! section by section.

mod error;
mod folder;
mod generator;
mod grid;
mod guarantee;
mod kernel;
mod law;
mod loads;
mod mix;
mod part;
mod problem;
mod robin;
mod shortest;
mod solve;
mod space;
mod spec;
mod stop;

pub use error::PrepareError;
pub use folder::{Progress, prepare};
pub use generator::{Generator, Made, Note};
pub use guarantee::Guarantee;
pub use law::{ArrivalLaw, Poisson};
pub use loads::Loads;
pub use ramsis_tables as tables;
pub use spec::{Grid, Model, QUEUE_MAX, SLACK_STEPS, Spec, front};
