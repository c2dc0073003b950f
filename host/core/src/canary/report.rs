//! The state of a canary, shared with its driver.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::rule::Verdict;
use super::slots::Member;
use crate::time::Micros;

/// A canary so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CanaryReport {
    /// Time since its first window.
    pub ran_for: Micros,
    /// By [`Member`].
    pub members: [MemberReport; 3],
    /// Rounds in which baseline and candidate both had requests that have ended.
    pub pairs: u64,
    /// Mean over the rounds of the candidate's utility less the baseline's.
    pub difference: f64,
    /// The confidence sequence of the difference at the rule's error.
    pub interval: (f64, f64),
    /// Evidence that the two differ; a verdict needs 1 over the rule's error.
    pub evidence: f64,
    /// How it ended. Until the driver follows it, all arrivals are the winner's.
    pub verdict: Option<Verdict>,
    /// The scheduler has let go of the policy.
    pub dropped: bool,
}

/// One member of a canary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Label of its policy.
    pub policy: String,
    /// Requests that arrived while it was on duty, without those whose clients went away.
    pub arrived: u64,
    /// Those that have ended.
    pub ended: u64,
    /// Those answered before their deadline.
    pub in_time: u64,
    /// Mean profiled quality of its answers, where it is known.
    pub quality: Option<f64>,
    /// Mean utility of its requests that have ended (SneakPeek eq. 2).
    pub utility: Option<f64>,
    /// Windows that it failed; the fallback served them.
    pub faults: u64,
    /// Its last fault.
    pub last_fault: Option<String>,
}

/// A view of a canary from outside of its scheduler.
#[derive(Clone, Debug, Default)]
pub struct CanaryWatch(Arc<Mutex<CanaryReport>>);

// === impl CanaryReport ===

impl CanaryReport {
    /// One member's part.
    pub fn member(&self, member: Member) -> &MemberReport {
        &self.members[member as usize]
    }
}

// === impl CanaryWatch ===

impl CanaryWatch {
    /// The newest report.
    pub fn report(&self) -> CanaryReport {
        self.locked(|report| report.clone())
    }

    /// Ends the canary by an operator's order: the state of the winner goes to its successor.
    pub fn order(&self, verdict: Verdict) {
        self.locked(|report| report.verdict = Some(verdict));
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.locked(|report| report.verdict)
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut CanaryReport)) {
        self.locked(change);
    }

    fn locked<T>(&self, look: impl FnOnce(&mut CanaryReport) -> T) -> T {
        // Each change is complete, so a report is whole wherever its thread panics.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
