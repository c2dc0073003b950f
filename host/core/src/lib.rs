//! The scheduling core of Switchyard: a deterministic state machine with no I/O and no clock.
//!
//! Events and the time go in ([`Scheduler::handle`]), commands come out ([`Scheduler::poll`]);
//! [`Scheduler::next_wakeup`] says when time itself is an event. The live server and the simulator
//! are two drivers of this one crate. It moves ids, sizes and times, never payloads. It contains no
//! tokio, wasmtime, candle, file or socket, reads no clock, and draws random numbers only from a
//! seed that the driver gives it.
//!
//! In data order:
//! - [`time`], [`ids`], [`catalog`], [`profile`]: the apps, variants and workers of a pool
//! - [`request`]: a request and how it ends; [`evidence`]: class probabilities from its neighbours
//! - [`event`]: events and commands; [`scheduler`]: the state machine between them
//! - `capacity`, [`estimate`]: the rates that the profile allows, and the machine's slowdown
//! - [`load`], `trigger`: when a window opens; [`window`]: the columns that a policy sees
//! - [`policy`]: the trait that decides; [`plan`]: its decision, and the check of it;
//!   [`guard`]: the policy that serves a window when another one fails; [`canary`]: two policies that
//!   share a pool and are compared
//! - `table`, `pending`: live requests; [`worker`], `lane`, [`route`], `held`: where they run
//!   and wait; [`ledger`]: proof that none is lost
//! - [`residents`]: which variants a worker holds, for the drivers
//! - [`decision`]: windows and their plans, kept for a while

#![forbid(unsafe_code)]

mod arrived;
pub mod canary;
mod capacity;
pub mod catalog;
pub mod cost;
mod deadlines;
pub mod decision;
pub mod estimate;
pub mod event;
pub mod evidence;
mod flood;
pub mod guard;
mod habit;
mod held;
pub mod ids;
mod lane;
pub mod ledger;
pub mod load;
mod pending;
pub mod plan;
#[doc(hidden)]
pub mod planted;
pub mod policy;
pub mod profile;
mod reach;
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
