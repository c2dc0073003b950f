//! Arrivals, drawn one after the other: drawn ones are not kept.
//!
//! - `process`: arrival times and phases; `gaps`, `markov`, `piecewise`, `window`, `burst`: the
//!   kinds of processes; `phases`: their current phase
//! - `stream_source`: one stream at work, with apps and deadlines; `sources`: all of a workload

mod burst;
mod gaps;
mod markov;
mod phases;
mod piecewise;
mod process;
mod sources;
mod stream_source;
mod window;

pub use phases::PHASES_MAX;
pub(crate) use sources::{SourceId, Sources};
pub(crate) use stream_source::{Arrival, DrawnRequest};
