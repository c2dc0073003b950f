//! The demo: a server of its own, real requests over HTTP, policies swapped under load, and a
//! table of what each policy made of the same arrivals.
//!
//! - `workload`: when requests come and what is in them, from a seed
//! - `child`: the server, as its own process, seen through its log and its admin port
//! - `client`: sends requests and remembers how each ended
//! - `stage`: the policy file that is replaced, and its configuration
//! - `run`: rounds, phases and swaps; `score`: what came of them; `simulated`: what the simulator
//!   says of the same arrivals; `report`: in print

mod child;
mod client;
mod report;
mod run;
mod score;
mod simulated;
mod stage;
mod workload;

use std::path::PathBuf;

use switchyard_executor::DeviceName;
use thiserror::Error;

pub(crate) use report::DemoReport;
pub(crate) use run::run;

/// What is shown.
#[derive(Clone, Debug)]
pub(crate) struct DemoOptions {
    /// Folder with the policies that are compared.
    pub(crate) policies: PathBuf,
    /// Folder of models.
    pub(crate) zoo: PathBuf,
    /// Folder where the machine's latencies are kept.
    pub(crate) profiles: PathBuf,
    /// What its workers compute on.
    pub(crate) device: DeviceName,
    /// The policies in the order in which they serve; each is compared with the first.
    pub(crate) names: Vec<String>,
    /// How often each of them serves.
    pub(crate) rounds: usize,
    /// How long each of them serves in a round, in seconds.
    pub(crate) phase_s: f64,
    /// Offered load, as a share of what the most accurate variants sustain on all workers.
    pub(crate) load: f64,
    /// Seed of arrivals and inputs.
    pub(crate) seed: u64,
}

/// Why the demo could not be shown.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    /// Models, policies or profile cannot be used.
    #[error("{0}")]
    Input(String),
    /// The server did not do its part.
    #[error("the server {0}")]
    Server(String),
}
