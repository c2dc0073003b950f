//! Options of the measurement.

use std::path::PathBuf;
use std::time::Duration;

/// Options of the measurement.
#[derive(Clone, Debug)]
pub(crate) struct OverloadOptions {
    /// Folder of policies.
    pub(crate) policies_dir: PathBuf,
    /// Folder of models.
    pub(crate) zoo: PathBuf,
    /// The profile; none: one is measured for `budget`.
    pub(crate) profile: Option<PathBuf>,
    /// Time for a profile.
    pub(crate) budget: Duration,
    /// The policies; `edf` is the native fallback.
    pub(crate) policies: Vec<String>,
    /// The treatment of late requests.
    pub(crate) late: String,
    /// Multiples of the load at the peak.
    pub(crate) loads: Vec<f64>,
    /// Connections, few to many.
    pub(crate) connections: Vec<usize>,
    /// Time for each point, in seconds.
    pub(crate) seconds: f64,
    /// Measurements of each number of connections.
    pub(crate) rounds: u32,
    /// Measure in virtual time.
    pub(crate) simulates: bool,
    /// Measure over HTTP.
    pub(crate) serves: bool,
}
