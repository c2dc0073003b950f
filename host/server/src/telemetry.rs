//! Logs on stderr, and metrics by name.

mod answers;
mod facts;
mod log;
mod log_queue;
pub(crate) mod names;
mod pool;
mod process;
mod registry;

pub use log::{LogFormat, init_log, init_server_log};
pub use log_queue::{LogLines, LogQueue};
pub use pool::PoolMeters;
pub use registry::Registry;
