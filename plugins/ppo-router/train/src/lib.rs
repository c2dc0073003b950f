//! The PPO router's environment and trainer (Tan et al., 2024): the simulator behind reset and
//! step, and proximal policy optimisation on the simplex.
//!
//! Everything is a function of its configuration and seed on one kind of machine; the matrix
//! products of the trainer may round differently on another. What the trainer runs slot by
//! slot, in training and in evaluation, is [`ppo_router_net`], whose bits are the same
//! everywhere.
//!
//! In data order:
//! - [`yard`]: the instances; [`env`](mod@env): the simulator as an environment (eq. 2)
//! - [`density`]: the policy's density on the simplex (eq. 9); [`heads`]: outputs as actions
//! - [`mlp`]: networks with a backward pass; [`adam`]
//! - [`settings`]: the numbers of the method
//! - [`rollout`]: trajectories and advantages (eq. 11); `batch`: what an update learns from;
//!   [`learner`]: updates (eq. 10)
//! - [`evaluate`](mod@evaluate): goodput and violations of a network; [`bounds`]: what it chose for
//!   batches
//! - [`curve`]: learning curves, `plot`: as SVG; [`train`](mod@train): all of it, with checkpoints

pub mod adam;
mod batch;
pub mod bounds;
pub mod curve;
pub mod density;
pub mod env;
pub mod evaluate;
pub mod heads;
pub mod learner;
pub mod mlp;
mod plot;
pub mod rollout;
pub mod settings;
pub mod train;
pub mod yard;

pub use bounds::Bounds;
pub use curve::Point;
pub use env::{Env, Slot, Tally};
pub use evaluate::{Evaluation, evaluate};
pub use learner::Learner;
pub use settings::Settings;
pub use train::{Options, Progress, TrainError, Trained, train};
pub use yard::{Model, Yard, YardError};
