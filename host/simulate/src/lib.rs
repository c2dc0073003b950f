//! From names and files to a simulation: `switchyard simulate` and the Python module share it, so that
//! the same inputs give the same results.
//!
//! In data order:
//! - [`bundle`]: policies and models that come with the program; [`shipped`]: the configuration that is
//!   found
//! - [`request`]: the inputs; [`named`]: policies, [`axis`]: sweeps, [`service`]: laws of service times,
//!   [`words`]: workloads and choices, as typed; [`nearest`]: suggestions for mistyped names
//! - [`test_bed`]: the pool that is simulated; `workers`, `apps`: more or fewer of them; `votes`:
//!   recorded votes of neighbours
//! - [`contenders`]: the policies, loaded
//! - [`prepared`]: the checked request and its runs; `meta`: the inputs, for results
//! - [`observed`]: rows of requests, batches and windows, in [`tables`]
//! - [`recorded`]: a recording as rows; [`arrivals`]: its requests
//! - [`figure`]: results as a plot
//!
//! The crate reads files and writes none.

#![forbid(unsafe_code)]

mod apps;
pub mod arrivals;
pub mod axis;
pub mod bundle;
pub mod contenders;
mod error;
pub mod figure;
mod meta;
pub mod named;
pub mod nearest;
pub mod observed;
pub mod prepared;
pub mod recorded;
pub mod request;
pub mod service;
pub mod shipped;
pub mod tables;
pub mod test_bed;
mod votes;
pub mod words;
mod workers;

pub use error::InputError;
pub use prepared::Prepared;
pub use request::SimulationRequest;
