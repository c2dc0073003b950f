//! How long a call may take, and when it is cut.
//!
//! What counts is the time that the call itself had a processor: on a busy machine a thread
//! can lose its processor for longer than a window's budget, and that is not the policy's
//! doing. Waiting has a bound of its own.
//!
//! A short call pays nothing for this: clocks are read only when an epoch ends under it.

use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::ticker::{PERIOD, Ticker};

/// A call that had too little of a processor is cut after this many times its budget.
const WALL_FACTOR: u32 = 4;

/// The budget of the call under way.
#[derive(Default)]
pub(crate) struct Budget {
    allowed: Duration,
    /// Taken when the first epoch ends under the call, so at most one period late.
    start: Option<Clocks>,
}

/// The clocks of the calling thread.
#[derive(Clone, Copy)]
pub(crate) struct Clocks {
    wall: Instant,
    /// Time on a processor, where the system tells.
    thread: Option<Duration>,
}

// === impl Budget ===

impl Budget {
    /// Epochs until the first look at the clocks.
    pub(crate) const FIRST_LOOK: u64 = 1;

    pub(crate) fn new(allowed: Duration) -> Self {
        Self {
            allowed,
            start: None,
        }
    }

    /// Whether the call may go on, and for how many epochs until the next look.
    pub(crate) fn look(&mut self, now: Clocks) -> UpdateDeadline {
        let Some(start) = self.start else {
            self.start = Some(now);
            return UpdateDeadline::Continue(Ticker::epochs(self.allowed).max(1));
        };
        let waited = now.wall.saturating_duration_since(start.wall);
        let used = match (now.thread, start.thread) {
            (Some(now), Some(start)) => now.saturating_sub(start),
            _ => waited,
        };
        let left = self.allowed.saturating_sub(used);
        // Within half a period of the end: the next epoch would be further from it.
        if left <= PERIOD / 2 || waited >= self.allowed * WALL_FACTOR {
            return UpdateDeadline::Interrupt;
        }
        UpdateDeadline::Continue(Ticker::epochs(left))
    }
}

// === impl Clocks ===

impl Clocks {
    pub(crate) fn now() -> Self {
        Self {
            wall: Instant::now(),
            thread: thread_time(),
        }
    }
}

#[cfg(target_os = "linux")]
fn thread_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).ok()
}

#[cfg(not(target_os = "linux"))]
fn thread_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// What a call of 5 ms is told at these (wall, thread) times in milliseconds.
    fn told(looks: &[(u32, u32)]) -> Vec<Option<u64>> {
        let (wall, mut budget) = (Instant::now(), Budget::new(5 * MS));
        let told = looks.iter().map(|&(wall_ms, thread_ms)| {
            let now = Clocks {
                wall: wall + wall_ms * MS,
                thread: Some(thread_ms * MS),
            };
            match budget.look(now) {
                UpdateDeadline::Continue(epochs) => Some(epochs),
                _ => None,
            }
        });
        told.collect()
    }

    #[test]
    fn a_runaway_is_cut_at_its_budget() {
        assert_eq!(told(&[(0, 0), (5, 5)]), [Some(10), None]);
    }

    #[test]
    fn time_without_a_processor_is_not_charged() {
        assert_eq!(
            told(&[(0, 0), (5, 1), (9, 3), (11, 5)]),
            [Some(10), Some(8), Some(4), None]
        );
    }

    #[test]
    fn waiting_for_a_processor_ends_too() {
        assert_eq!(told(&[(0, 0), (19, 1), (20, 1)]), [Some(10), Some(8), None]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_sleeping_thread_uses_no_time() {
        let before = Clocks::now();
        std::thread::sleep(20 * MS);
        let after = Clocks::now();
        let used = after.thread.zip(before.thread).map(|(a, b)| a - b);
        assert!(used.is_some_and(|used| used < 10 * MS), "{used:?}");
    }
}
