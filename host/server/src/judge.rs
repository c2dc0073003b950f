//! The plan of another policy for a window that was decided, and the worth of both plans.
//! `switchyard replay` judges recorded windows, a shadow judges live ones.
//!
//! - `outlook`: the expected result of a plan for each request, by the profile
//! - `alternatives`: the other ways to run a batch
//! - `difference`: the differences of two plans; `json`: the same for programs

mod alternatives;
mod difference;
mod json;
mod outlook;

use std::sync::Arc;

use serde_json::Value;
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::plan::{Plan, check_window};
use switchyard_core::policy::Policy;

pub use self::alternatives::{Alternative, Alternatives};
pub use self::difference::{Difference, RequestDifference};
pub use self::json::Names;
use self::outlook::Judge;
pub use self::outlook::{Fate, Outlook, Worth};

/// Counts of the windows that a policy was asked to plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Windows asked about.
    pub windows: u64,
    /// The policy's plan was the same.
    pub identical: u64,
    /// The policy's plan was different, or it failed.
    pub different: u64,
    /// Of the different ones: only the wake time differs.
    pub wake_only: u64,
    /// Of the different ones: the policy gave no plan, or a plan that would be refused.
    pub failed: u64,
    /// Worth of the plans carried out, over the windows that differ.
    pub done: Worth,
    /// Worth of the policy's plans, over the same windows.
    pub proposed: Worth,
}

// === impl Tally ===

impl Tally {
    /// Asks a policy to plan a decided window. `None`: its plan is the same.
    /// `shows_residents`: the window says which variants are resident.
    pub fn ask(
        &mut self,
        policy: &mut dyn Policy,
        catalog: &Arc<Catalog>,
        decision: &Decision,
        shows_residents: bool,
        plan: &mut Plan,
    ) -> Option<Difference> {
        self.windows += 1;
        plan.clear();
        let answer = policy.schedule(&decision.window, plan);
        let answer = answer.map_err(|fault| fault.to_string());
        if answer.is_ok() && difference::agree(&decision.plan, plan) {
            self.identical += 1;
            return None;
        }
        let usable = answer.and_then(|()| {
            check_window(&decision.window, catalog, plan)
                .map_err(|error| format!("its plan would be refused: {error}"))
        });
        let judge = Judge::new(catalog, &decision.window, shows_residents);
        let found = difference::difference(decision, &judge, usable.map(|()| &*plan));
        self.different += 1;
        self.failed += u64::from(found.failure.is_some());
        self.wake_only += u64::from(found.is_wake_only());
        self.done.add(found.done);
        self.proposed.add(found.proposed);
        Some(found)
    }

    /// The worth of both sides over the windows in which they differ.
    pub fn worth_json(&self, sides: [&str; 2]) -> Value {
        json::worths(sides, self.done, self.proposed)
    }
}
