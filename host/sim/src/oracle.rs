//! Schedules by an oracle that knows every arrival in advance, and a bound on any schedule.
//!
//! For ANTT and deadlines the schedule found is feasible, not proved optimal: the optimum lies
//! between it and the bound. Each request runs alone and whole, on each worker by its app's fastest
//! variant there, as in MAEL's setting. For goodput the schedule is optimal over all batches,
//! variants and exits; it takes small runs only.
//!
//! - `tasks`: the requests of a run, drawn as the run will draw them; `goal`: the aim of a schedule
//! - `search`: a good schedule of them, found by large neighbourhood search
//! - `menu`, `exact`: the best schedule in batches, found by branch and bound
//! - `clairvoyant`: a policy that carries the schedule out, so that the simulator counts its results
//!   like those of any policy
//! - `bound`: a lower bound of the ANTT of any schedule, preemptive or not

mod bound;
mod clairvoyant;
mod exact;
mod goal;
mod menu;
mod search;
mod tasks;

pub(crate) use bound::antt_least;
pub(crate) use clairvoyant::Clairvoyant;
pub use goal::Goal;
