//! When the next window opens: on the events that the policy asked for, on its period, and at the
//! time that its last plan asked for.

use crate::policy::Description;
use crate::time::{Micros, Time};
use crate::window::Causes;

/// Shortest period, and shortest time to a wake. It bounds the calls of a policy that always asks
/// to be called at once.
pub(crate) const PERIOD_MIN: Micros = Micros(100);

/// Time between windows for which nothing but requests is new, in a crowd: past capacity a window
/// per arrival costs the workers a good part of a core, and no worker waits for it.
const CROWD_PERIOD: Micros = Micros(1_000);

/// Pending requests from which they are a crowd if no worker is idle.
pub(crate) const CROWD_MIN: usize = 128;

/// Collects causes until a window takes them.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    /// Causes since the last window, also those that the policy did not ask for.
    happened: Causes,
    next_period: Option<Time>,
    wake: Option<Time>,
    /// A batch has left its worker without a start since the last window.
    unstarted: bool,
    /// When the last window opened.
    opened: Time,
    /// Time of the next window for the arrivals of a crowd.
    gathered_until: Option<Time>,
}

/// The requests that a window would show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// None, and nothing completed.
    Idle,
    /// Some, or something completed.
    Some,
    /// Many, and no worker is idle.
    Crowd,
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
        happened.worker_idle = idle && (fresh || self.unstarted);
    }

    /// Notes that all requests of a batch have left it before its start.
    pub(crate) fn note_unstarted(&mut self) {
        self.unstarted = true;
    }

    /// Drops the causes: another trigger's window has served them.
    pub(crate) fn forget(&mut self) {
        self.happened = Causes::default();
        self.unstarted = false;
        self.gathered_until = None;
    }

    /// Sets the wake time of the newest plan.
    pub(crate) fn set_wake(&mut self, now: Time, wake: Option<Time>) {
        self.wake = wake.map(|at| at.max(now + PERIOD_MIN));
    }

    /// The next time that opens a window without an event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let times = [self.next_period, self.wake, self.gathered_until];
        times.into_iter().flatten().min()
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

    /// The causes that the policy asked for, if any; all causes are then dropped.
    pub(crate) fn take(
        &mut self,
        now: Time,
        description: &Description,
        pending: Pending,
    ) -> Option<Causes> {
        let on = description.on;
        let idle = pending == Pending::Idle;
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
        self.gathered_until = None;
        if !because.any() {
            self.happened.periodic = false;
            return None;
        }
        let next = self.opened + CROWD_PERIOD;
        if pending == Pending::Crowd && only_requests(because) && now < next {
            self.gathered_until = Some(next);
            return None;
        }
        self.opened = now;
        self.unstarted = false;
        self.happened = Causes::default();
        Some(because)
    }
}

/// Whether arrivals and evidence are the only causes.
fn only_requests(because: Causes) -> bool {
    let others = Causes {
        arrival: false,
        evidence: false,
        ..because
    };
    !others.any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Triggers;

    fn on_arrival() -> Description {
        let on = Triggers {
            arrival: true,
            completion: true,
            ..Triggers::default()
        };
        Description {
            on,
            ..Description::default()
        }
    }

    #[test]
    fn a_crowd_of_arrivals_opens_a_window_per_millisecond() {
        let description = on_arrival();
        let mut trigger = Trigger::default();
        let mut take = |at_us, arrived: bool, completed: bool, pending| {
            trigger.happened().arrival |= arrived;
            trigger.happened().completion |= completed;
            let because = trigger.take(Time(at_us), &description, pending);
            (because.is_some(), trigger.next_time())
        };
        let none = None;
        let first = take(5_000, true, false, Pending::Crowd);
        assert_eq!(first, (true, none));
        let gathered = Some(Time(6_000));
        let second = take(5_010, true, false, Pending::Crowd);
        assert_eq!(second, (false, gathered));
        let third = take(5_020, true, false, Pending::Crowd);
        assert_eq!(third, (false, gathered));
        let due = take(6_000, false, false, Pending::Crowd);
        assert_eq!(due, (true, none));
        // A completion opens one at once, with the arrivals before it.
        take(6_100, true, false, Pending::Crowd);
        assert_eq!(take(6_110, false, true, Pending::Crowd), (true, none));
        // So does the end of the crowd.
        take(6_120, true, false, Pending::Crowd);
        assert_eq!(take(6_130, false, false, Pending::Some), (true, none));
    }
}
