//! Policies without wasm: catalogs and windows built line by line, and the host's check of plans.
//!
//! ```
//! use switchyard_sdk::testing::{CatalogBuilder, WindowBuilder, run};
//! # use switchyard_sdk::{Catalog, Description, Policy, PlanBuilder, Window};
//! # struct Oldest;
//! # impl Policy for Oldest {
//! #     fn describe() -> Description { Description::new("oldest", "0.1.0", "") }
//! #     fn configure(_: &Catalog, _: &str) -> Result<Self, String> { Ok(Self) }
//! #     fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
//! #         for (worker, request) in window.idle_workers().into_iter().zip(window.requests()) {
//! #             let variant = window.catalog().app(request.app()).variants()[0];
//! #             plan.run(worker.id(), variant).requests([request]);
//! #         }
//! #         Ok(())
//! #     }
//! # }
//! let catalog = CatalogBuilder::new()
//!     .app("heart", &["normal", "ectopic"])
//!     .variant("cnn", &[0.9, 0.8])
//!     .latency(100, 10)
//!     .worker("cpu")
//!     .build();
//! let mut policy = Oldest::configure(&catalog, "{}")?;
//! let window = WindowBuilder::new(&catalog).request("heart").request("heart").build();
//! let decisions = run(&mut policy, &catalog, &window);
//! assert_eq!(decisions.batches[0].requests, [1]);
//! # Ok::<(), String>(())
//! ```

mod case;
mod catalog;
mod decisions;
mod documented;
mod window;

use switchyard_core::plan::{Plan, check_window};

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::convert::to_core;
use crate::plan::PlanBuilder;
use crate::policy::Policy;
use crate::window::{Index, Window};

pub use case::Case;
pub use catalog::CatalogBuilder;
pub use decisions::{Batch, Decisions};
pub use documented::check_documented;
/// A plan and a window as they cross the boundary: a [`WindowBuilder`] makes such a window, and
/// [`try_run`] takes it and returns such a plan.
pub use raw::{Plan as RawPlan, Window as RawWindow};
pub use switchyard_core::plan::PlanError;
pub use window::WindowBuilder;

/// Whether the host would apply a plan to this window: the host's own check, which answers for the
/// fields that the window shows.
///
/// # Errors
/// The first entry that the host would refuse, and why.
pub fn check(catalog: &Catalog, window: &RawWindow, plan: &RawPlan) -> Result<(), PlanError> {
    let mut converted = Plan::default();
    to_core::plan(plan.clone(), &mut converted);
    check_window(
        &to_core::window(window),
        &to_core::catalog(catalog.raw()),
        &converted,
    )
}

/// Runs a policy on one window.
///
/// # Panics
/// The policy fails, or the host would refuse its plan.
#[allow(clippy::panic)] // This is a test's assertion.
pub fn run<P: Policy>(policy: &mut P, catalog: &Catalog, window: &RawWindow) -> Decisions {
    match try_run(policy, catalog, window) {
        Ok(plan) => Decisions::of(&plan),
        Err(error) => panic!("{error}"),
    }
}

/// Runs a policy on one window and checks its plan.
///
/// # Errors
/// The policy's own, or why the host would refuse its plan.
pub fn try_run<P: Policy>(
    policy: &mut P,
    catalog: &Catalog,
    window: &RawWindow,
) -> Result<RawPlan, String> {
    let mut index = Index::default();
    index.fill(catalog, window)?;
    let mut followed = None;
    if policy.follows_slowdown() {
        let followed = followed.insert(catalog.clone());
        followed.follow(window.slowdown.as_deref());
    }
    let view = Window::new(followed.as_ref().unwrap_or(catalog), window, &index);
    let mut plan = PlanBuilder::new(view);
    policy.schedule(&view, &mut plan)?;
    let plan = plan.finish();
    check(catalog, window, &plan).map_err(|error| error.to_string())?;
    Ok(plan)
}
