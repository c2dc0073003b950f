//! When the next window opens: on the events that the policy asked for, on its period, and at the
//! time that its last plan asked for.

use crate::policy::Description;
use crate::time::{Micros, Time};
use crate::window::Causes;

/// Shortest period, and shortest time to a wake. It bounds the calls of a policy that always asks
/// to be called at once.
pub(crate) const PERIOD_MIN: Micros = Micros(100);

/// Collects causes until a window takes them.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    /// Causes since the last window, also those that the policy did not ask for.
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

    /// Notes whether a worker is idle while requests wait. That is a cause only if something
    /// happened since the last window: a policy that left the worker idle would decide the same
    /// again.
    pub(crate) fn note_idle_worker(&mut self, idle: bool) {
        let happened = &mut self.happened;
        let fresh = happened.arrival || happened.completion || happened.evidence;
        happened.worker_idle = idle && fresh;
    }

    /// Drops the causes: another trigger's window has served them.
    pub(crate) fn forget(&mut self) {
        self.happened = Causes::default();
    }

    /// Sets the wake time of the newest plan.
    pub(crate) fn set_wake(&mut self, now: Time, wake: Option<Time>) {
        self.wake = wake.map(|at| at.max(now + PERIOD_MIN));
    }

    /// The next time that opens a window without an event.
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
            // Periods missed while the driver was busy are skipped.
            let missed = now.since(due).0 / every.0;
            self.next_period = Some(due + Micros((missed + 1) * every.0));
        }
    }

    /// The causes that the policy asked for, if any; all causes are then dropped. `idle`: nothing
    /// is pending and nothing completed.
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
            workers: self.happened.workers,
        };
        if because.any() {
            self.happened = Causes::default();
            return Some(because);
        }
        self.happened.periodic = false;
        None
    }
}
