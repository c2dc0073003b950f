//! Scheduling policies as WebAssembly components: the only crate that knows wasmtime.
//!
//! A policy arrives as a file and leaves as a `Box<dyn Policy>` of the core, which cannot
//! tell it from a native one. In data order:
//! - [`watcher`]: a file in the policies directory changed and is whole
//! - [`loader`]: reads, compiles (or finds compiled code in the [`cache`]), describes,
//!   configures with the [`settings`] beside it, and tries it on recorded windows
//! - [`engine`] and its [`ticker`]: how code is compiled, and what cuts a runaway at the end
//!   of its `budget`
//! - [`limits`]: what one policy may take
//! - `contract` picks the host module for a component's contract version: `v0_1`
//! - `wasi`: the empty world of components that import WASI
//! - `guest`: an instance behind the core's trait; a fault costs it the instance
//! - [`conformance`]: windows of every shape, and a yard, that any policy must get through
//! - [`history`]: the versions that served before, for rollback
//! - [`recording`]: windows and plans in a file, for whoever wants to see them again
//!
//! A bad policy never stops the yard: whatever it does becomes a `PolicyFault` or a
//! [`LoadError`] that names the file, the phase and the reason.

pub mod cache;
pub mod conformance;
pub mod engine;
pub mod history;
pub mod limits;
pub mod loader;
pub mod recording;
pub mod settings;
pub mod ticker;
pub mod watcher;

mod artifacts;
mod budget;
mod contract;
mod fault;
mod guest;
mod host_state;
mod interface;
mod usage;
mod v0_1;
mod wasi;
mod whole;

pub use engine::{EngineOptions, PolicyEngine};
pub use history::{History, PolicyVersion};
pub use interface::Interface;
pub use limits::Limits;
pub use loader::{LoadError, LoadReport, Loaded, Loader, LoaderOptions};
pub use usage::Usage;
pub use watcher::{PolicyFileEvent, WatchOptions, Watcher};
