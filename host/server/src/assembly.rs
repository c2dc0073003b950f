//! From a configuration to the parts of its pools, in data order:
//! - `plan`: the apps of the zoo and the workers, `served`: their variants and tensors
//! - `hardware`: cores, devices and kinds of the workers
//! - `profile`: the profile of this machine, read or measured
//! - `parts`: all of these joined to the parts that a driver starts from

mod error;
mod hardware;
mod parts;
mod plan;
mod profile;
mod served;

pub use error::AssemblyError;
pub use hardware::HardwareError;
pub(crate) use parts::Predecessor;
pub use plan::PoolPlan;
pub use profile::{Measured, measure};
pub use served::{AppTensors, ServedVariant};
