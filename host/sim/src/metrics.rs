//! Counts of ended requests: exact counts and sums, latencies in histograms, and nothing per request.
//!
//! - `meters`: counting during a run; `sums`: of one app in one phase; `latency`: histograms;
//!   `predictions`: answers by true and predicted class
//! - `summary`, `report`: the results of one run; `closing`: from counts to results
//! - `across`: means over seeds; `paired`: two policies, seed by seed

mod across;
mod closing;
mod latency;
mod meters;
mod paired;
mod predictions;
mod report;
mod summary;
mod sums;

pub use across::{Estimate, Estimates, PartEstimates, t_quantile_975};
pub(crate) use closing::Closing;
pub(crate) use latency::Histogram;
pub use latency::Latencies;
pub(crate) use meters::Meters;
pub use paired::PairedEffect;
pub use predictions::{ClassReport, Predictions};
pub use report::{BatchReport, EnergyReport, PartReport, Report, Served, WorkerReport};
pub use summary::Summary;
