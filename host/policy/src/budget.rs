//! How long a call may take, and when it is cut.
//!
//! What counts is the time that the call itself had a processor: on a busy machine a thread
//! can lose its processor for longer than a window's budget, and that is not the policy's
//! doing. Waiting has a bound of its own.
//!
//! A short call pays next to nothing for this: the processor's time is a call of the system, so it
//! is read when an epoch ends under a call, and beforehand not more often than a period.

use std::cell::Cell;
use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::ticker::{PERIOD, Ticker};

/// A call that had too little of a processor is cut after this many times its budget.
const WALL_FACTOR: u32 = 4;

/// The budget of the call under way.
pub(crate) struct Budget {
    allowed: Duration,
    start: Clocks,
    has_looked: bool,
}

/// The clocks of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Clocks {
    wall: Instant,
    /// Time on a processor, where the system tells.
    thread: Option<Duration>,
}

thread_local! {
    /// What this thread's clocks said when they were last read to begin a call.
    static READ: Cell<Option<Clocks>> = const { Cell::new(None) };
}

// === impl Budget ===

impl Budget {
    /// Epochs until the first look at the clocks.
    pub(crate) const FIRST_LOOK: u64 = 1;

    /// For a call of this thread that begins now.
    pub(crate) fn begin(allowed: Duration) -> Self {
        Self::from(Clocks::recent(), allowed)
    }

    fn from(start: Clocks, allowed: Duration) -> Self {
        Self {
            allowed,
            start,
            has_looked: false,
        }
    }

    /// Whether the call may go on, and for how many epochs until the next look.
    pub(crate) fn look(&mut self, now: Clocks) -> UpdateDeadline {
        let waited = now.wall.saturating_duration_since(self.start.wall);
        let used = match (now.thread, self.start.thread) {
            (Some(now), Some(start)) => now.saturating_sub(start),
            _ => waited,
        };
        let left = self.allowed.saturating_sub(used);
        // Within half a period of the end: the next epoch would be further from it.
        let is_over = left <= PERIOD / 2 || waited >= self.allowed * WALL_FACTOR;
        // The first look cuts nothing: to the clocks of a virtual machine, time that its host took
        // is time used, and a short call that met with that is over before the second look.
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        if is_over && !is_first {
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

    /// As [`now`](Self::now), but by what the thread's clock said at most a [`PERIOD`] ago: the
    /// thread counts as having been on a processor since, in favour of what begins.
    fn recent() -> Self {
        let wall = Instant::now();
        let since = |read: &Self| wall.saturating_duration_since(read.wall);
        let read = READ.get().filter(|read| since(read) < PERIOD);
        let read = read.unwrap_or_else(|| {
            let now = Self {
                wall,
                thread: thread_time(),
            };
            READ.set(Some(now));
            now
        });
        Self {
            wall,
            thread: read.thread.map(|thread| thread + since(&read)),
        }
    }
}

#[cfg(target_os = "linux")]
fn thread_time() -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // Not by rustix: it goes around the C library to the system's own, which valgrind, where the suite
    // counts a window's instructions, has taken away.
    // SAFETY: `time` is what the call writes to.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    (failed == 0).then(|| Duration::new(seconds, nanoseconds))
}

#[cfg(not(target_os = "linux"))]
fn thread_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// What a call of 5 ms is told at these (wall, thread) times in tenths of milliseconds.
    fn told(looks: &[(u32, u32)]) -> Vec<Option<u64>> {
        let wall = Instant::now();
        let at = |(wall_100us, thread_100us)| Clocks {
            wall: wall + wall_100us * MS / 10,
            thread: Some(thread_100us * MS / 10),
        };
        let mut budget = Budget::from(at((0, 0)), 5 * MS);
        let told = looks.iter().map(|&look| match budget.look(at(look)) {
            UpdateDeadline::Continue(epochs) => Some(epochs),
            _ => None,
        });
        told.collect()
    }

    #[test]
    fn a_runaway_is_cut_at_its_budget() {
        assert_eq!(told(&[(24, 24), (49, 49)]), [Some(5), None]);
        assert_eq!(told(&[(22, 22), (52, 52)]), [Some(6), None]);
    }

    #[test]
    fn time_without_a_processor_is_not_charged() {
        assert_eq!(
            told(&[(25, 5), (70, 30), (90, 45), (95, 50)]),
            [Some(9), Some(4), Some(1), None]
        );
    }

    #[test]
    fn waiting_for_a_processor_ends_too() {
        assert_eq!(
            told(&[(25, 10), (199, 10), (200, 10)]),
            [Some(8), Some(8), None]
        );
    }

    #[test]
    fn one_that_seems_over_at_the_first_look_is_looked_at_again() {
        assert_eq!(told(&[(80, 80), (85, 85)]), [Some(1), None]);
        assert_eq!(told(&[(300, 20), (305, 25)]), [Some(6), None]);
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

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_read_lately_is_at_most_a_period_off() {
        for _ in 0..1_000 {
            let (recent, now) = (Clocks::recent(), Clocks::now());
            let (recent, now) = (recent.thread.unwrap(), now.thread.unwrap());
            assert!(recent < now + PERIOD, "{recent:?} at {now:?}");
        }
        std::thread::sleep(MS);
        let (before, recent) = (Clocks::now(), Clocks::recent());
        assert!(recent.thread >= before.thread, "read again after a period");
    }
}
