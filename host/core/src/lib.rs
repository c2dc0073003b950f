//! The scheduling core of Switchyard: a deterministic state machine with no I/O and no clock.
//!
//! Events and the time go in ([`Scheduler::handle`]), commands come out
//! ([`Scheduler::poll`]); [`Scheduler::next_wakeup`] says when time itself is an event. The
//! live server and the simulator are two drivers of this one crate. It moves ids, sizes and
//! times, never payloads. It contains no tokio, wasmtime, candle, file or socket, reads no
//! clock, and draws random numbers only from a seed it was given.
//!
//! In data order:
//! - [`time`], [`ids`], [`catalog`], [`profile`]: the world that policies choose in
//! - [`request`]: what arrives and how it ends; [`evidence`]: what its data says of it
//! - [`event`]: what goes in and what comes out; [`scheduler`]: the state machine between
//! - [`load`], `trigger`: when a window opens; [`window`]: what a policy sees
//! - [`policy`]: the trait that decides; [`plan`]: what it decided, untrusted until checked;
//!   [`guard`]: who decides when it fails
//! - `table`, [`worker`], [`route`]: where every request is; [`ledger`]: that none is lost
//! - [`residents`]: which variants a worker holds, for whoever drives the core
//! - [`decision`]: what was seen and done, kept for a while

pub mod catalog;
pub mod decision;
pub mod event;
pub mod evidence;
pub mod guard;
pub mod ids;
pub mod ledger;
pub mod load;
mod pending;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod request;
pub mod residents;
pub mod route;
pub mod scheduler;
mod table;
pub mod time;
mod trigger;
pub mod window;
pub mod worker;

pub use event::{Command, Event};
pub use scheduler::{Scheduler, SchedulerConfig};
