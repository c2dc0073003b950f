//! Logs on stderr, and metrics by name.

mod answers;
mod faults;
mod log;
mod log_queue;
mod meters;
pub(crate) mod names;
mod pool;
mod process;
mod refusals;
mod registry;
mod text;

pub(crate) use faults::PolicyFaults;
pub use log::{LogFormat, init_log, init_server_log};
pub use log_queue::{LogLines, LogQueue};
pub use meters::Counter;
pub(crate) use meters::{Gauge, Histogram};
pub use pool::PoolMeters;
pub(crate) use refusals::Refusals;
pub use registry::Registry;

/// Content type of the metrics.
pub(crate) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
