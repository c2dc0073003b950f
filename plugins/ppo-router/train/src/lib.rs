//! The PPO router's environment and trainer (Tan et al., 2024): the simulator as an environment,
//! and proximal policy optimisation on the simplex.
//!
//! A training is a function of options and seed on one kind of machine; other machines may round
//! matrix products differently. Each update resets its environments with its own seeds, so that a
//! resumed training equals an uninterrupted one bit for bit. The trainer decides slots with
//! [`ppo_router_net`], whose bits are the same on every machine.
//!
//! In data order:
//! - [`test_bed`]: the instances; [`env`](mod@env): the simulator as an environment (eq. 2)
//! - [`density`]: the policy's density on the simplex (eq. 9); [`heads`]: outputs as actions (eq.
//!   8, section 5.2.2)
//! - [`mlp`]: networks with a backward pass; [`adam`]
//! - [`settings`]: the hyperparameters (sections 5.1.4 and 5.1.5)
//! - [`rollout`]: trajectories and advantages (eq. 11); `batch`: the samples of an update;
//!   [`learner`]: updates (eq. 10, Algorithm 1); [`stats`]: their statistics
//! - [`evaluate`](mod@evaluate): goodput and violations of a network; [`bounds`]: its batch bounds
//! - [`curve`]: learning curves as CSV and SVG; [`train`](mod@train): a whole training
//!
//! There is no GPU support: a minibatch is some 60 million floating-point operations, less than the
//! launches of its kernels, and more than half of an update is the simulator. The unordered sums of
//! a GPU would also break the bit-exact resume.

#![forbid(unsafe_code)]

pub mod adam;
mod batch;
pub mod bounds;
pub mod curve;
pub mod density;
pub mod env;
mod error;
pub mod evaluate;
pub mod heads;
pub mod learner;
pub mod mlp;
pub mod rollout;
pub mod settings;
pub mod stats;
pub mod test_bed;
pub mod train;

pub use bounds::BatchBounds;
pub use curve::CurvePoint;
pub use env::{Env, OutcomeCounter, SlotOutcome};
pub use error::TrainError;
pub use evaluate::{Evaluation, evaluate};
pub use learner::Learner;
pub use settings::TrainSettings;
pub use test_bed::{Model, TestBed, TestBedError};
pub use train::{Progress, TrainOptions, Trained, train};
