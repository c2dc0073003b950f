//! From a configuration to the parts of its pools, in data order:
//! - `plan`: the apps of the zoo and the workers, `served`: their variants and tensors
//! - `hardware`: cores, devices and kinds of the workers
//! - `remote`: the workers on other machines
//! - `profile`: the profile of this machine, read or measured
//! - `stand_in`: the apps that a profile brings, for workers that only take its time
//! - `parts`: all of these joined to the parts that a driver starts from

mod error;
mod hardware;
mod parts;
mod plan;
mod profile;
mod remote;
mod served;
mod stand_in;

pub use error::AssemblyError;
pub use hardware::HardwareError;
pub(crate) use parts::Predecessor;
pub use plan::PoolPlan;
pub use profile::{Measured, measure};
pub(crate) use remote::version;
pub use served::{AppTensors, ServedVariant};
pub use stand_in::{brings_apps, narrow};
