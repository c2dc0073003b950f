//! The trait that a scheduling policy implements, and the faults of one.

pub mod fallback;

pub use fallback::{EarliestDeadlineFirst, FALLBACK_NAME};

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::ids::RequestId;
use crate::plan::Plan;
use crate::request::{Outcome, Request};
use crate::time::{Micros, Time};
use crate::window::Window;

/// A scheduling policy: native, or a component behind the same trait.
///
/// A policy's plan is a function of its inputs and its seed. A policy is never trusted: its plans
/// are checked, and a fallback serves the windows that it fails.
pub trait Policy: Send {
    /// Its name and the windows it wants. Does not change over its life.
    fn description(&self) -> &Description;

    /// Takes a catalog: at load, and whenever the catalog changes.
    ///
    /// # Errors
    /// The policy cannot work with this catalog or its settings.
    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault>;

    /// Decides. `plan` arrives empty.
    ///
    /// # Errors
    /// Why the policy gives no answer; the contents of `plan` are then ignored.
    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault>;

    /// State for its successor.
    ///
    /// # Errors
    /// The call itself failed; the successor starts fresh.
    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        Ok(Vec::new())
    }

    /// Takes the state of its predecessor; empty when there is none.
    ///
    /// # Errors
    /// The state is not usable; the policy stays fresh.
    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        let _ = state;
        Ok(())
    }

    /// A request was accepted.
    fn arrived(&mut self, request: &Request) {
        let _ = request;
    }

    /// A request ended.
    fn ended(&mut self, now: Time, request: &Request, outcome: &Outcome) {
        let _ = (now, request, outcome);
    }

    /// Another policy took over, and this one is kept for the case that it fails.
    fn superseded(&mut self) {}

    /// Label of the policy that decides about a request, if it is another one than this.
    fn author(&self, request: RequestId) -> Option<&Arc<str>> {
        let _ = request;
        None
    }

    /// Whether a fault that concerns one request is counted by this policy itself, for a part of it.
    fn takes_blame(&mut self, request: RequestId, fault: &PolicyFault) -> bool {
        let _ = (request, fault);
        false
    }
}

/// A policy's name, the events that open its windows, and the fields it wants in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Short name, as in metrics and answers.
    pub name: String,
    /// The policy's own version.
    pub version: String,
    /// One line for people.
    pub summary: String,
    /// Period of its windows; none: only on events and wakes.
    pub every: Option<Micros>,
    /// Open the periodic window even when nothing is pending and nothing completed.
    pub when_empty: bool,
    /// Events that open a window at once.
    pub on: Triggers,
    /// The fields that its windows show.
    pub wants: WindowFields,
    /// As a component it is sent only the workers that changed since its last window. The core's windows
    /// show all of them.
    pub changed_workers: bool,
}

/// Events that open a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// A request became pending. While 128 or more are and no worker is idle, arrivals and
    /// evidence alone open at most one window per millisecond.
    pub arrival: bool,
    /// A worker has nothing running and nothing queued.
    pub worker_idle: bool,
    /// A batch finished.
    pub completion: bool,
    /// Evidence of a pending request became ready.
    pub evidence: bool,
}

/// Parts of a window that are left empty unless asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowFields {
    /// Evidence counts.
    pub evidence: bool,
    /// Requests that ended since the last window.
    pub completions: bool,
    /// Requests that run, are queued or wait in lanes.
    pub placed: bool,
    /// Which worker holds which variant.
    pub residents: bool,
}

// === impl WindowFields ===

impl WindowFields {
    /// The fields of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            evidence: self.evidence || other.evidence,
            completions: self.completions || other.completions,
            placed: self.placed || other.placed,
            residents: self.residents || other.residents,
        }
    }
}

/// A call of a policy that gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {reason}")]
pub struct PolicyFault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The details, for the operator.
    pub reason: String,
}

/// The kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// It crashed.
    Trap,
    /// It was interrupted at the end of its time budget.
    Overrun,
    /// It asked for more memory than it may have.
    Memory,
    /// It overflowed its stack.
    Stack,
    /// It returned an error.
    Failed,
    /// Its plan was refused.
    Refused,
    /// It left a request pending long after its deadline although a worker was idle.
    Starved,
    /// It rejected everything, window after window, although a worker was idle.
    Rejecting,
}

// === impl Description ===

impl Description {
    /// `name@version`, as in logs and answers.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

// === impl PolicyFault ===

impl PolicyFault {
    /// A fault with its reason.
    pub fn new(kind: FaultKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
        }
    }
}

// === impl FaultKind ===

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Trap,
        Self::Overrun,
        Self::Memory,
        Self::Stack,
        Self::Failed,
        Self::Refused,
        Self::Starved,
        Self::Rejecting,
    ];

    /// Name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Overrun => "overrun",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Starved => "starved",
            Self::Rejecting => "rejecting",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_is_listed() {
        let last = FaultKind::Rejecting as usize;
        assert_eq!(FaultKind::ALL.map(|kind| kind as usize).last(), Some(&last));
        assert_eq!(FaultKind::ALL.len(), last + 1);
    }
}
