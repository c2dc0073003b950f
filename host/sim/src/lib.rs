//! The scheduling core of Switchyard in virtual time.
//!
//! The same [`Scheduler`](switchyard_core::Scheduler) and the same policies as in the live
//! server; only the clock and the executor are others: time jumps from event to event, and the
//! profile says how long a batch takes. Nothing in this crate decides anything.
//!
//! A run is a function of its [`Scenario`], its policy and its seed, bit for bit on every
//! machine: see [`random`] for the arithmetic, `events` for the order of what happens at one
//! moment. Memory does not grow with simulated time: arrivals are drawn one by one, ended
//! requests leave counts, sums and histograms.
//!
//! In data order:
//! - [`workload`]: what arrives, as text or JSON; `source` draws it
//! - [`scenario`]: the yard, and how the world behaves where the catalog does not say
//! - `driver`, `events`: the loop; `hardware`, `evidence`, `live`: what the live server has
//!   executors, an index and clients for
//! - [`metrics`]: what a run reports, and what several runs say together
//! - [`runner`]: runs, sweeps; [`stepped`]: a run that somebody outside decides, slot by slot;
//!   [`timeline`]: what ran where; [`overhead`]: host time of policies; [`oracle`]: what could have
//!   been done
//! - [`report`]: outcomes as a table, as data and as a page

mod driver;
mod events;
mod evidence;
mod hardware;
mod known;
mod live;
pub mod metrics;
pub mod oracle;
pub mod overhead;
pub mod random;
pub mod report;
pub mod runner;
pub mod scenario;
mod source;
pub mod stepped;
pub mod timeline;
pub mod workload;

pub use driver::Observer;
pub use hardware::{Cost, NoCell, Quantile, ServiceError, ServiceTimes};
pub use metrics::Report;
pub use runner::{Contender, Outcome, Point, PolicyFactory, run, run_observed, sweep};
pub use scenario::{EvidenceTimes, Scenario, SimError};
pub use source::PHASES_MAX;
pub use stepped::Stepped;
pub use workload::{Workload, WorkloadError};
