//! Scheduling policies as WebAssembly components: the only crate that knows wasmtime.
//!
//! A policy arrives as a file and leaves as a `Box<dyn Policy>` of the core, which cannot
//! tell it from a native one. In data order:
//! - [`files`]: files that changed are reported once they hold still; [`watcher`]: those of the
//!   policies in a directory
//! - `allow`: the list of components that may be loaded
//! - [`loader`]: reads and compiles a policy, or finds its compiled code in the `cache`;
//!   describes it, configures it with its [`settings`], and tries it on recorded windows
//! - `registry`: picks the module of a component's contract version, `v0_1` or `v0_2`
//! - [`engine`], its `compiler` and its [`ticker`]: how code is compiled, soon or well, and how a call is
//!   cut at the end of its `budget`
//! - [`limits`]: the time, memory and log lines of one policy
//! - `wasi`: the empty world of components that import WASI
//! - `guest`: an instance behind the core's trait; a fault ends the instance
//! - [`trial`]: made windows of every shape, for trials of policies
//! - [`history`]: the versions that served before, for rollback; [`store`]: the same on disk; [`packed`]: one
//!   of them, for other machines
//! - [`recording`]: windows and plans in a file, to be read again
//!
//! A bad policy never stops the server: every fault of its becomes a `PolicyFault` or a
//! [`LoadError`] with the file, the phase and the reason.

#![deny(unsafe_code)] // Exceptions: compiled code in `cache`, the thread's clock in `budget`.

pub mod engine;
pub mod files;
pub mod history;
pub mod limits;
pub mod loader;
pub mod packed;
pub mod recording;
pub mod settings;
pub mod store;
pub mod ticker;
pub mod trial;
pub mod watcher;

mod allow;
mod artifacts;
mod budget;
mod cache;
mod compiler;
mod contract;
mod fault;
mod guest;
mod hash;
mod host_state;
mod interface;
mod log_quota;
mod plan_bounds;
mod printed;
mod registry;
mod truncate;
mod usage;
mod v0_1;
mod v0_2;
mod wasi;
mod wasm_shape;
mod worker_times;

pub use cache::LoadedCode;
pub use compiler::LoadStop;
pub use engine::{CodeTier, EngineOptions, PolicyEngine};
pub use history::{PolicyHistory, PolicyVersion};
pub use interface::ComponentInterface;
pub use limits::Limits;
pub use loader::{LoadError, LoadReport, Loaded, Loader, LoaderOptions};
pub use packed::PackedVersion;
pub use store::{StoreError, VersionStore};
pub use usage::PolicyUsage;
pub use watcher::{PolicyFileEvent, PolicyWatcher};
