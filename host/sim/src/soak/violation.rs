//! A broken rule.

use std::fmt;

use serde::Serialize;
use switchyard_core::time::Time;

/// The rules of a soak run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Accepted requests are those that have ended and those that are live.
    Conservation,
    /// One answer for each accepted request, which is its own, and none for others.
    OneAnswer,
    /// A worker has one batch, of live requests that run nowhere else, on the worker that holds their
    /// activations.
    OneBatch,
    /// Queues, lanes, history and parked activations keep their bounds, and memory follows live requests.
    Bounds,
    /// A request that is due ends while a worker is idle.
    Progress,
    /// While the fallback serves, no request is pending with all workers idle.
    Fallback,
    /// A window's columns fit each other and the catalog.
    Window,
    /// Activations of ended requests are released.
    Release,
    /// After a wake-up the next one is in the future.
    Wakeup,
    /// The same seed gives the same commands.
    Determinism,
    /// The core does not panic.
    NoPanic,
}

/// A rule that a case broke, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Virtual time.
    pub at_us: u64,
    /// The requests, workers and numbers.
    pub detail: String,
}

// === impl Violation ===

impl Violation {
    pub(super) fn new(rule: Rule, at: Time, detail: impl Into<String>) -> Self {
        Self {
            rule,
            at_us: at.0,
            detail: detail.into(),
        }
    }
}

/// An error unless a condition holds.
pub(super) fn require(
    holds: bool,
    rule: Rule,
    at: Time,
    detail: impl FnOnce() -> String,
) -> Result<(), Violation> {
    match holds {
        true => Ok(()),
        false => Err(Violation::new(rule, at, detail())),
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} us: {}", self.rule, self.at_us, self.detail)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conservation => "conservation",
            Self::OneAnswer => "one answer",
            Self::OneBatch => "one batch",
            Self::Bounds => "bounds",
            Self::Progress => "progress",
            Self::Fallback => "fallback",
            Self::Window => "window",
            Self::Release => "release",
            Self::Wakeup => "wake-up",
            Self::Determinism => "determinism",
            Self::NoPanic => "no panic",
        })
    }
}
