//! The inputs of a simulation.

use std::path::PathBuf;
use std::time::Duration;

use switchyard_core::catalog::Late;
use switchyard_core::time::Micros;
use switchyard_server::config::{LatencySource, PercentileName};
use switchyard_sim::Workload;

use crate::axis::Axis;
use crate::bundle::Bundle;
use crate::named::Named;
use crate::service::Service;

/// The inputs of a simulation.
#[derive(Clone, Debug)]
pub struct SimulationRequest {
    /// The policies, all on the same arrivals.
    pub policies: Vec<Named>,
    /// The arrivals.
    pub workload: Workload,
    /// The workload as typed, for results.
    pub workload_name: String,
    /// Profile with the latencies, of any machine.
    pub profile: PathBuf,
    /// Configuration whose first pool is simulated; by default the apps that an imported profile
    /// brings, otherwise the configuration that is found.
    pub config: Option<PathBuf>,
    /// Policies and models that come with the program.
    pub bundle: Option<Bundle>,
    /// Folder of models; overrides every app's zoo.
    pub zoo: Option<PathBuf>,
    /// Folder of policies; overrides `policies.dir`.
    pub folder: Option<PathBuf>,
    /// Number of workers; kinds are assigned round-robin.
    pub workers: Option<u32>,
    /// Virtual seconds in which requests arrive; by default the length of the workload's longest
    /// trace, or 60 without a trace.
    pub seconds: Option<f64>,
    /// Seeds of the runs of each policy; at least one.
    pub seeds: Vec<u64>,
    /// A parameter and its values.
    pub sweep: Option<Axis>,
    /// Law of service times.
    pub service: Service,
    /// Time of a batch to its worker, and of its results back, each, in addition to the service time.
    pub link: Micros,
    /// Time of a request to the server and of its answer back, together. The server does not know it.
    pub wire: Micros,
    /// Latencies that policies plan with.
    pub percentile: PercentileName,
    /// Treatment of requests that cannot be answered in time; by default as each app is configured.
    pub late: Option<Late>,
    /// Latencies that predictions rest on; by default as configured.
    pub latencies: Option<LatencySource>,
    /// Longest call of a component for one window, at 1,000 instructions per microsecond; by default as
    /// configured.
    pub window_budget: Option<Duration>,
    /// Start without resident models.
    pub cold: bool,
    /// Recorded votes of neighbours; without them votes are drawn from each app's SneakPeek model.
    pub votes: Option<PathBuf>,
    /// The first requests, which count in no metric of requests.
    pub skip_first: u64,
}

// === impl SimulationRequest ===

impl SimulationRequest {
    /// With the defaults of `switchyard simulate`.
    pub fn new(profile: PathBuf, workload: Workload, workload_name: String) -> Self {
        Self {
            policies: Vec::new(),
            workload,
            workload_name,
            profile,
            config: None,
            bundle: None,
            zoo: None,
            folder: None,
            workers: None,
            seconds: None,
            seeds: vec![1],
            sweep: None,
            service: Service::profiled(),
            link: Micros::ZERO,
            wire: Micros::ZERO,
            percentile: PercentileName::P95,
            late: None,
            latencies: None,
            window_budget: None,
            cold: false,
            votes: None,
            skip_first: 0,
        }
    }
}
