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
