//! The scheduling core of Switchyard in virtual time.
//!
//! Scheduler and policies are those of the live server, with another clock and another executor: time
//! jumps from event to event, and the profile gives the duration of a batch. This crate takes no
//! scheduling decision.
//!
//! A run is a function of its [`Scenario`], its policy and its seed, bit for bit on every machine:
//! [`random`] has the arithmetic, `events` the order of events at one time. Memory does not grow with
//! simulated time: arrivals are drawn one by one, and ended requests leave only counts, sums and
//! histograms.
//!
//! In data order:
//! - [`workload`]: arrivals as text or JSON; `source` draws them
//! - [`scenario`]: catalog, workload, and the behaviour that the catalog leaves open;
//!   [`votes`]: recorded votes of neighbours
//! - `driver`, `events`: the loop; `hardware`, `links`, `evidence`, `clients`, `live`: instead of the live
//!   server's executors, network, index and clients; `observer`: calls during a run
//! - [`metrics`]: results of a run, and of several runs together
//! - [`runner`]: runs and sweeps; [`stepped`]: a run decided from outside, slot by slot;
//!   [`timeline`]: batches over time; [`overhead`]: host time of policies; [`oracle`]: schedules with
//!   knowledge of all arrivals
//! - [`served`]: the arrivals of a run for a live server, and the metrics of its answers
//! - [`soak`]: schedules of faults, and rules that hold after every event
//! - [`report`]: outcomes as tables, as data and as a page; [`plot`]: plots as SVG

#![forbid(unsafe_code)]

mod clients;
mod driver;
mod events;
mod evidence;
mod hardware;
mod known_rates;
mod links;
mod live;
pub mod metrics;
mod observer;
pub mod oracle;
pub mod overhead;
pub mod plot;
pub mod random;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod served;
pub mod soak;
mod source;
pub mod stepped;
mod text;
pub mod timeline;
pub mod votes;
pub mod workload;

pub use hardware::{BatchCost, Quantile, ServiceError, ServiceTimes, UnprofiledBatch};
pub use links::{LinkTimes, RandomDeaths};
pub use metrics::Report;
pub use observer::Observer;
pub use runner::{
    Contender, PolicyFactory, PolicyOutcome, SweepPoint, run, run_observed, sweep, sweep_observed,
};
pub use scenario::{EvidenceTimes, Outage, Scenario, SimError};
pub use source::PHASES_MAX;
pub use stepped::Stepped;
pub use workload::{Workload, WorkloadError};
