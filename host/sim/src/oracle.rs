//! Schedules by an oracle that knows every arrival in advance, and a bound on any schedule.
//!
//! The schedule found is feasible, not proved optimal: the optimum lies between it and the bound. Each
//! request runs alone and whole, on each worker by its app's fastest variant there, as in MAEL's
//! setting; gains from batches, slices or less accurate exits are not searched.
//!
//! - `tasks`: the requests of a run, drawn as the run will draw them; `goal`: the aim of a schedule
//! - `search`: a good schedule of them, found by large neighbourhood search
//! - `clairvoyant`: a policy that carries the schedule out, so that the simulator counts its results
//!   like those of any policy
//! - `bound`: a lower bound of the ANTT of any schedule, preemptive or not

mod bound;
mod clairvoyant;
mod goal;
mod search;
mod tasks;

pub(crate) use bound::antt_least;
pub(crate) use clairvoyant::Clairvoyant;
pub use goal::Goal;
