//! The observation, the network and the weights file that the PPO router's trainer and component
//! share (Tan et al., "Reinforcement Learning Based Online Request Scheduling Framework for
//! Workload-Adaptive Edge Deep Learning Inference", 2024).
//!
//! No I/O, clock or randomness; only `+ - * /` on f32 in a fixed order and `libm`'s functions, so
//! that an observation gives the same decision on every machine and in WebAssembly.
//!
//! - [`observation`]: the instances at the start of a slot as numbers (section 3.1.3)
//! - [`network`]: a tanh network whose outputs are shares of the arrivals (eq. 8 without noise)
//!   and, optionally, batch bounds (section 5.2.2)
//! - [`meta`], [`weights`]: the network as safetensors, parsed from untrusted bytes
//! - [`math`]: tanh and softmax

#![forbid(unsafe_code)]

pub mod error;
#[cfg(test)]
mod fixtures;
pub mod math;
pub mod meta;
pub mod network;
pub mod observation;
pub mod weights;

pub use error::WeightsError;
pub use meta::{Meta, batch_pairs};
pub use network::{Decision, Network, Scratch};
pub use observation::{InstanceState, Kind, Layout, Observer, PhaseState, SlotState};
