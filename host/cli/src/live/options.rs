//! Options of a live run.

use std::path::PathBuf;

use clap::ValueEnum;

/// The workers of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiveWorkers {
    /// They compute nothing and take the time of the profile.
    StandIn,
    /// They run the models of the zoo.
    Models,
}

/// Options of a live run.
#[derive(Clone, Debug)]
pub(crate) struct LiveOptions {
    /// The workers of the server.
    pub(crate) workers: LiveWorkers,
    /// The core of the client, which neither workers that run models nor a server with stand-ins use; none
    /// if the machine has one core or the system does not say.
    pub(crate) client_core: Option<usize>,
    /// The cores that are left for workers.
    pub(crate) worker_cores: Vec<usize>,
    /// The configuration that is simulated.
    pub(crate) config: PathBuf,
}

// === impl LiveOptions ===

impl LiveOptions {
    /// The last core is the client's.
    pub(crate) fn new(workers: LiveWorkers, config: PathBuf) -> Self {
        let mut cores = switchyard_threads::cores().unwrap_or_default();
        let client_core = if cores.len() > 1 { cores.pop() } else { None };
        Self {
            workers,
            client_core,
            worker_cores: if client_core.is_some() {
                cores
            } else {
                Vec::new()
            },
            config,
        }
    }
}
