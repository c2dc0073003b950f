//! What the PPO router's trainer and its component share, bit for bit: what is observed, the
//! network, its weights as a file (Tan et al., "Reinforcement Learning Based Online Request
//! Scheduling Framework for Workload-Adaptive Edge Deep Learning Inference", 2024).
//!
//! No I/O, no clock, no randomness; `+ - * /` on f32 in a fixed order and `libm`'s functions
//! only, so that the same observation gives the same decision on every machine, in wasm too.
//!
//! - [`observation`]: the yard at the start of a slot as numbers (section 3.1.3)
//! - [`network`]: a tanh network whose outputs are shares of the arrivals (eq. 8 without its
//!   noise) and, in the batching variant, batch bounds (section 5.2.2)
//! - [`weights`]: the network as safetensors, parsed from untrusted bytes
//! - [`math`]: the hyperbolic tangent and the softmax

pub mod math;
pub mod network;
pub mod observation;
pub mod weights;

pub use network::{Decision, Network, Scratch, batch_pairs};
pub use observation::{Instance, Kind, Layout, Observer, PhaseSight, Sight};
pub use weights::{Meta, WeightsError};
