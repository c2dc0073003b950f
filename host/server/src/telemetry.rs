//! Logs on stderr, and metrics by name.

mod log;
pub(crate) mod names;
mod pool;
mod registry;

pub use log::{LogFormat, init_log};
pub use pool::PoolMeters;
pub use registry::Registry;
