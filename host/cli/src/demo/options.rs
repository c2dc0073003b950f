//! Options of the demo.

use std::path::PathBuf;

use switchyard_executor::DeviceName;

/// Options of the demo.
#[derive(Clone, Debug)]
pub(crate) struct DemoOptions {
    /// Folder with the policies that are compared.
    pub(crate) policies: PathBuf,
    /// Folder of models.
    pub(crate) zoo: PathBuf,
    /// Folder of the machine's profiles.
    pub(crate) profiles: PathBuf,
    /// Device of its workers.
    pub(crate) device: DeviceName,
    /// The policies in the order in which they serve; each is compared with the first.
    pub(crate) names: Vec<String>,
    /// How often each of them serves.
    pub(crate) rounds: usize,
    /// How long each of them serves in a round, in seconds.
    pub(crate) phase_s: f64,
    /// Offered load, as a share of the capacity of all workers with the most accurate variants; at most
    /// the rate that the client can send.
    pub(crate) load: f64,
    /// Seed of arrivals and inputs.
    pub(crate) seed: u64,
}
