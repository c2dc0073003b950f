//! Workloads: streams of requests, each with an arrival process, the apps that its requests are for,
//! and a law of deadlines. As text (see [`spec`]) or as JSON.

mod arrivals;
mod checks;
mod cut;
mod deadline;
mod error;
mod scale;
mod silence;
pub mod spec;
mod stream;
mod trace;

pub use arrivals::{Arrivals, Phase};
pub use cut::TraceCut;
pub use deadline::Deadline;
pub use error::WorkloadError;
pub use stream::{Apps, LengthShare, RequestStream, Workload};
pub use trace::{Recorded, Trace};
