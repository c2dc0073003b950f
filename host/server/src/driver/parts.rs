//! The parts of a pool.

use std::sync::Arc;
use std::time::Duration;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::VariantId;
use switchyard_core::profile::Profile;
use switchyard_executor::Executor;

use super::stats::VariantCounters;
use super::weights::PoolWeights;
use crate::evidence::EvidenceModels;
use crate::traces::Tracer;

/// Builds the executor of a worker, at the start and again after each loss of the worker. An error
/// is the reason why there is none.
pub type BuildExecutor = Box<dyn FnMut() -> Result<Box<dyn Executor>, String> + Send>;

/// The address of a worker's server now; `None` while no server has its slot.
pub type WorkerAddress = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The executor of a worker and its cores.
pub struct PoolExecutor {
    /// Builds the part that computes the batches.
    pub build: BuildExecutor,
    /// The number of its threads.
    pub threads: usize,
    /// The cores of the threads, one each; empty: any.
    pub cores: Vec<usize>,
    /// Longest pause between two restarts.
    pub pause_max: Duration,
    /// The address of its server; none: it runs in this process.
    pub address: Option<WorkerAddress>,
}

/// The parts of a pool.
pub struct PoolParts {
    /// Name in logs, metrics and threads.
    pub name: String,
    /// The apps, variants and workers.
    pub catalog: Arc<Catalog>,
    /// Bounds and seed of the scheduler.
    pub scheduler: SchedulerConfig,
    /// One per worker of the catalog.
    pub executors: Vec<PoolExecutor>,
    /// Variants that each worker never evicts.
    pub pinned: Vec<Vec<VariantId>>,
    /// The weights that the executors share.
    pub weights: PoolWeights,
    /// Profiled medians of batch latencies, for comparison with the observed ones.
    pub medians: Profile,
    /// The ratio of observed to profiled latency, either way, past which a variant drifts.
    pub drift_ratio: f64,
    /// The evidence models, by app.
    pub evidence: EvidenceModels,
    /// Calls that may wait for a turn of the driver.
    pub inbox_max: usize,
    /// The counters of its variants.
    pub counters: Arc<VariantCounters>,
    /// Traces requests, if the configuration asks for it.
    pub traces: Option<Arc<Tracer>>,
}
