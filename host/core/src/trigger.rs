//! When the next window opens: on events the policy asked for, on its period, at the time
//! its last plan asked for.

use crate::policy::Description;
use crate::time::{Micros, Time};
use crate::window::Causes;

/// Shortest period, and shortest way to a wake time. It keeps a policy that always asks to
/// be called at once from doing nothing but being called.
pub(crate) const PERIOD_MIN: Micros = Micros(100);

/// Gathers causes until a window takes them.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    /// What has happened, wanted or not.
    happened: Causes,
    next_period: Option<Time>,
    wake: Option<Time>,
}

// === impl Trigger ===

impl Trigger {
    /// A new policy: its period starts now, and its first window opens at once.
    pub(crate) fn restart(&mut self, now: Time, description: &Description) {
        self.wake = None;
        self.next_period = description.every.map(|every| now + every.max(PERIOD_MIN));
        self.happened.changed = true;
    }

    pub(crate) fn happened(&mut self) -> &mut Causes {
        &mut self.happened
    }

    /// Whether a worker is idle while requests wait, at this moment. It is a cause only
    /// when something happened since the last window: a policy that left the worker idle
    /// is not asked again for nothing.
    pub(crate) fn note_idle_worker(&mut self, idle: bool) {
        let happened = &mut self.happened;
        let fresh = happened.arrival || happened.completion || happened.evidence;
        happened.worker_idle = idle && fresh;
    }

    /// Somebody else has looked at what happened.
    pub(crate) fn forget(&mut self) {
        self.happened = Causes::default();
    }

    /// A plan's wish replaces the one before.
    pub(crate) fn set_wake(&mut self, now: Time, wake: Option<Time>) {
        self.wake = wake.map(|at| at.max(now + PERIOD_MIN));
    }

    /// The next time that is a cause by itself.
    pub(crate) fn next_time(&self) -> Option<Time> {
        [self.next_period, self.wake].into_iter().flatten().min()
    }

    /// Moves time-based causes that are due into `happened`.
    pub(crate) fn tick(&mut self, now: Time, description: &Description) {
        if self.wake.is_some_and(|at| at <= now) {
            self.wake = None;
            self.happened.wake = true;
        }
        let Some(every) = description.every.map(|every| every.max(PERIOD_MIN)) else {
            self.next_period = None;
            return;
        };
        let due = *self.next_period.get_or_insert(now + every);
        if due <= now {
            self.happened.periodic = true;
            // Periods missed while the driver was away are not made up for.
            let missed = now.since(due).0 / every.0;
            self.next_period = Some(due + Micros((missed + 1) * every.0));
        }
    }

    /// The causes that matter to this policy, if any; `idle` says that there is nothing to
    /// decide. Taken causes are forgotten, all of them.
    pub(crate) fn take(&mut self, description: &Description, idle: bool) -> Option<Causes> {
        let on = description.on;
        let because = Causes {
            periodic: self.happened.periodic && (!idle || description.when_empty),
            arrival: self.happened.arrival && on.arrival,
            worker_idle: self.happened.worker_idle && on.worker_idle,
            completion: self.happened.completion && on.completion,
            evidence: self.happened.evidence && on.evidence,
            wake: self.happened.wake,
            changed: self.happened.changed,
        };
        if because.any() {
            self.happened = Causes::default();
            return Some(because);
        }
        self.happened.periodic = false;
        None
    }
}
