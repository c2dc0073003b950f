//! RAMSIS offline: for an app's profile, deadline and workers, one table per load with the variant
//! and batch of every state, and its guarantee.
//!
//! [`Generator`] makes one table and can be cancelled; [`prepare`] writes a folder of tables. In
//! data order:
//! - `spec`, `model`, `loads`: the inputs (section 3.1.1), the Pareto front (section 4.3.3), the
//!   loads (section 6)
//! - `space`, `grid`: the states (section 4.2)
//! - `law`, `arrivals`, `robin`, `partial`, `kernel`: the transition law of round robin (section
//!   4.4)
//! - `shortest`: the law of join-the-shortest-queue (section 3.2.1)
//! - `problem`: the decision process with its actions (sections 4.1, 4.3.1 and 4.3.2)
//! - `solve`, `mix`: the best policy (section 4.1) and its stationary distribution (section 5.1)
//! - `guarantee`: expectations (section 5.1)
//! - `generator`, `folder`: tables and their folder
//!
//! The paper sums equation 2 over the arrivals of four intervals, for every pair of states and
//! action. The law here is equal to 1e-13 (`robin/tests.rs`) and cheaper, because:
//! - Given the latency, all arrivals after interval A depend on k_A only through k_A mod K. Rows
//!   are per queue length, variant and phase, and mixed by the phase's distribution per state.
//! - A row is a difference of sums over one count: a dot product of a distribution with a
//!   cumulative one.
//! - The time after a slack's arrival is SLO - T_j for every action: one distribution per slack.
//! - Policy iteration replaces value iteration; Anderson's acceleration solves each step.

#![forbid(unsafe_code)]

mod arrivals;
mod cancel;
mod error;
mod folder;
mod generator;
mod grid;
mod guarantee;
mod kernel;
mod law;
mod loads;
mod mix;
mod model;
mod partial;
mod problem;
mod robin;
mod shortest;
mod solve;
mod space;
mod spec;

pub use error::PrepareError;
pub use folder::{Progress, prepare};
pub use generator::{GeneratedTable, Generator, Note};
pub use grid::Grid;
pub use guarantee::Guarantee;
pub use law::{ArrivalLaw, Poisson};
pub use loads::Loads;
pub use model::{Model, front};
pub use ramsis_tables as tables;
pub use spec::{QUEUE_MAX, SLACK_STEPS, Spec};
