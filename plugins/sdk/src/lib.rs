//! Write a Switchyard scheduling policy: implement [`Policy`], call [`export_policy!`].
//!
//! ```
//! use switchyard_sdk::{Catalog, Description, Policy, PlanBuilder, Window};
//!
//! /// Runs the oldest request, alone, on an idle worker.
//! struct Oldest;
//!
//! impl Policy for Oldest {
//!     fn describe() -> Description {
//!         Description::new("oldest", "0.1.0", "one at a time, oldest first")
//!     }
//!
//!     fn configure(_: &Catalog, _: &str) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!
//!     fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
//!         let fresh = window.requests().filter(|request| request.progress().is_none());
//!         for (worker, request) in window.idle_workers().into_iter().zip(fresh) {
//!             let variant = window.catalog().app(request.app()).variants()[0];
//!             plan.run(worker.id(), variant).requests([request]);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! switchyard_sdk::export_policy!(Oldest);
//! ```
//!
//! A policy is an ordinary library: `cargo test` runs it natively, on windows built with
//! [`testing`]. In data order:
//! - [`catalog`]: apps, variants, workers, latencies; [`settings`]: the policy's own JSON
//! - [`window`]: pending requests and the state of the workers; [`accuracy`], [`utility`],
//!   [`priority`]: the papers' formulas
//! - [`ladder`]: an app's variants as choices, most accurate first
//! - [`instances`], [`slots`]: for policies that route arrivals, from slot to slot
//! - [`plan`]: the decision; [`reason`]: why
//! - [`sort`]: short lists, in little code
//! - [`host`]: calls to the host: log, artifacts, random numbers
//! - [`component`]: from the contract's calls to the trait; `native`: the same policy in the host
//!   without wasm (native builds)

#![deny(unsafe_code)]

pub mod accuracy;
#[allow(missing_docs, unreachable_pub, clippy::all)] // Generated.
#[allow(clippy::use_self, clippy::semicolon_if_nothing_returned)]
#[allow(
    unsafe_code,
    reason = "wit-bindgen reads and writes the memory that crosses"
)]
pub mod bindings;
pub mod catalog;
pub mod component;
#[cfg(not(target_arch = "wasm32"))]
mod convert;
pub mod host;
pub mod ids;
pub mod instances;
pub mod ladder;
#[cfg(any(target_arch = "wasm32", test))]
#[doc(hidden)] // For `export_policy!`.
#[allow(unsafe_code, reason = "a policy's allocator hands out raw memory")]
pub mod memory;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
pub mod plan;
pub mod policy;
pub mod priority;
pub mod reason;
pub mod settings;
pub mod slots;
pub mod sort;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod utility;
pub mod window;

pub use catalog::{Catalog, Penalty};
pub use ids::{AppId, BatchId, ExitId, KindId, RequestId, VariantId, WorkerId};
pub use plan::{Lane, PlanBuilder};
pub use policy::{Description, Events, Policy, WindowFields};
pub use reason::Reason;
pub use window::{RequestRef, Window, WorkerRef};

/// The example in the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// And so is the policy in the book's tutorial.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorial.md")]
struct Tutorial;
