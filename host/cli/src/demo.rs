//! The demo: its own server, real requests over HTTP, policies swapped under load, and a table of the
//! results of each policy on the same arrivals.
//!
//! - `options`, `error`: input and failure
//! - `workload`: arrival times and contents of requests, from a seed
//! - `child`: the server process, observed through its log and its admin port
//! - `client`: sends requests and records their outcomes
//! - `stage`: the policy file that is replaced, and its configuration
//! - `run`: rounds, phases and swaps; `score`: their results; `simulated`: the same arrivals in the
//!   simulator; `report`: tables

mod child;
mod client;
mod error;
mod options;
mod report;
mod run;
mod score;
mod simulated;
mod stage;
mod workload;

pub(crate) use self::child::ServerProcess;
pub(crate) use self::error::DemoError;
pub(crate) use self::options::DemoOptions;
pub(crate) use self::report::DemoReport;
pub(crate) use self::run::run;
