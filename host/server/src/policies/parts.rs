//! The parts of a pool's policies.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchyard_policy::loader::Loader;

use super::shared::SharedPolicy;
use crate::driver::PoolHandle;
use crate::telemetry::Registry;

/// The parts that a pool's policies are managed with.
pub struct PoliciesParts {
    /// The pool.
    pub pool: Arc<PoolHandle>,
    /// The component that is followed.
    pub file: PathBuf,
    /// Folder of the policies that come with the program: orders name them too.
    pub bundled: Option<PathBuf>,
    /// Settings that override those in the file next to the component, field by field.
    pub settings: Option<toml::Table>,
    /// Loads components, under the pool's limits.
    pub loader: Loader,
    /// Longest time of one window call. The driver answers no message during a call.
    pub window_budget: Duration,
    /// Versions kept for rollback.
    pub history: usize,
    /// Folder in which they are kept over restarts.
    pub versions: PathBuf,
    /// Where swaps are counted.
    pub registry: Registry,
    /// Where other schedulers have the policy too; none: only here.
    pub shared: Option<SharedPolicy>,
}
