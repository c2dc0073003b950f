//! Policies without wasm: catalogs and windows built line by line, and a check of the plans.
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

#[cfg(feature = "native")]
mod case;
mod catalog;
mod check;
mod documented;
mod window;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::plan::PlanBuilder;
use crate::policy::Policy;
use crate::window::{Index, Window};

#[cfg(feature = "native")]
pub use case::Case;
pub use catalog::CatalogBuilder;
pub use check::check;
pub use documented::check_documented;
pub use window::WindowBuilder;

/// A plan as tests like to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisions {
    /// The dispatches, in order.
    pub batches: Vec<Batch>,
    /// Requests answered from their evidence.
    pub answers: Vec<u64>,
    /// Requests refused.
    pub rejects: Vec<u64>,
    /// Batches taken back.
    pub revokes: Vec<u64>,
    /// Where arrivals go from now on.
    pub routes: Vec<raw::Route>,
    /// When a window was asked for.
    pub wake_us: Option<u64>,
}

/// One dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Position of the worker.
    pub worker: u32,
    /// Position of the variant.
    pub variant: u32,
    /// First stage run and one past the last.
    pub stages: (u32, u32),
    /// The exit that answers; none parks.
    pub exit: Option<u32>,
    /// Request ids, in order.
    pub requests: Vec<u64>,
}

/// Runs a policy on one window.
///
/// # Panics
/// The policy fails, or the host would refuse its plan.
#[allow(clippy::panic)] // This is a test's assertion.
pub fn run<P: Policy>(policy: &mut P, catalog: &Catalog, window: &raw::Window) -> Decisions {
    match try_run(policy, catalog, window) {
        Ok(plan) => Decisions::of(&plan),
        Err(error) => panic!("{error}"),
    }
}

/// Runs a policy on one window and checks its plan.
///
/// # Errors
/// What the policy says, or why the host would refuse its plan.
pub fn try_run<P: Policy>(
    policy: &mut P,
    catalog: &Catalog,
    window: &raw::Window,
) -> Result<raw::Plan, String> {
    let mut index = Index::default();
    index.fill(catalog, window)?;
    let view = Window::new(catalog, window, &index);
    let mut plan = PlanBuilder::new(view);
    policy.schedule(&view, &mut plan)?;
    let plan = plan.finish();
    check(catalog, window, &plan)?;
    Ok(plan)
}

// === impl Decisions ===

impl Decisions {
    /// Reads a plan.
    pub fn of(plan: &raw::Plan) -> Self {
        let mut members = plan.members.iter().copied();
        let batches = plan.dispatches.iter().map(|d| Batch {
            worker: d.worker,
            variant: d.variant,
            stages: (d.from_stage, d.to_stage),
            exit: d.exit,
            requests: members.by_ref().take(d.size as usize).collect(),
        });
        Self {
            batches: batches.collect(),
            answers: plan.answers.clone(),
            rejects: plan.rejects.clone(),
            revokes: plan.revokes.clone(),
            routes: plan.routes.clone(),
            wake_us: plan.wake,
        }
    }

    /// Every request dispatched, in order.
    pub fn dispatched(&self) -> Vec<u64> {
        self.batches
            .iter()
            .flat_map(|batch| batch.requests.iter().copied())
            .collect()
    }
}
