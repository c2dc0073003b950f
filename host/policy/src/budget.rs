//! How long a call may take, and when it is cut.
//!
//! A budget counts the time that the call ran on a processor: on a busy machine a thread can lose
//! its processor for longer than a window's budget, which is not the policy's fault. A second, wider
//! limit bounds the wall time.
//!
//! A short call pays next to nothing for this: reading the thread's clock is a system call, so the
//! host reads it when an epoch ends under a call, and before a call at most once per period.

use std::cell::Cell;
use std::time::{Duration, Instant};

use wasmtime::UpdateDeadline;

use crate::ticker::{PERIOD, Ticker};

/// A call that waits for a processor is cut after this many times its budget.
const WALL_FACTOR: u32 = 4;

/// The budget of the call under way.
pub(crate) struct CallBudget {
    allowed: Duration,
    start: ThreadClocks,
    has_looked: bool,
}

/// The clocks of a thread.
#[derive(Clone, Copy)]
pub(crate) struct ThreadClocks {
    wall: Instant,
    /// Time on a processor; none on systems without such a clock.
    thread: Option<Duration>,
}

thread_local! {
    /// This thread's clocks when they were last read to begin a call.
    static READ: Cell<Option<ThreadClocks>> = const { Cell::new(None) };
}

// === impl CallBudget ===

impl CallBudget {
    /// Epochs until the first look at the clocks.
    pub(crate) const FIRST_LOOK: u64 = 1;

    /// For a call of this thread that begins now.
    pub(crate) fn begin(allowed: Duration) -> Self {
        Self::from(ThreadClocks::recent(), allowed)
    }

    fn from(start: ThreadClocks, allowed: Duration) -> Self {
        Self {
            allowed,
            start,
            has_looked: false,
        }
    }

    /// Whether the call may go on, and for how many epochs until the next look.
    pub(crate) fn look(&mut self, now: ThreadClocks) -> UpdateDeadline {
        let waited = now.wall.saturating_duration_since(self.start.wall);
        let used = match (now.thread, self.start.thread) {
            (Some(now), Some(start)) => now.saturating_sub(start),
            _ => waited,
        };
        let left = self.allowed.saturating_sub(used);
        // Within half a period of the end: the next epoch would be further away.
        let is_over = left <= PERIOD / 2 || waited >= self.allowed * WALL_FACTOR;
        // The first look cuts nothing. The clocks of a virtual machine count time that its host
        // took away as time used. A short call that was interrupted so ends before the second look.
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        if is_over && !is_first {
            return UpdateDeadline::Interrupt;
        }
        UpdateDeadline::Continue(Ticker::epochs(left))
    }
}

// === impl ThreadClocks ===

impl ThreadClocks {
    pub(crate) fn now() -> Self {
        Self {
            wall: Instant::now(),
            thread: thread_time(),
        }
    }

    /// As [`now`](Self::now), from a reading at most one [`PERIOD`] old. The time since counts as
    /// time on a processor, in favour of the call that begins.
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
    #[allow(
        unsafe_code,
        reason = "rustix reads this clock around the C library, through the vDSO; valgrind, under \
                  which the suite counts a window's instructions, has none, and the process crashes"
    )]
    // SAFETY: the call writes to `time`, which lives until it returns.
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

    /// The epochs until the next look, for a call of 5 ms at these (wall, thread) times in tenths
    /// of milliseconds; none where it is cut.
    fn epochs(looks: &[(u32, u32)]) -> Vec<Option<u64>> {
        let wall = Instant::now();
        let at = |(wall_100us, thread_100us)| ThreadClocks {
            wall: wall + wall_100us * MS / 10,
            thread: Some(thread_100us * MS / 10),
        };
        let mut budget = CallBudget::from(at((0, 0)), 5 * MS);
        let epochs = looks.iter().map(|&look| match budget.look(at(look)) {
            UpdateDeadline::Continue(epochs) => Some(epochs),
            _ => None,
        });
        epochs.collect()
    }

    #[test]
    fn a_runaway_is_cut_at_its_budget() {
        assert_eq!(epochs(&[(24, 24), (49, 49)]), [Some(5), None]);
        assert_eq!(epochs(&[(22, 22), (52, 52)]), [Some(6), None]);
    }

    #[test]
    fn time_without_a_processor_is_not_charged() {
        assert_eq!(
            epochs(&[(25, 5), (70, 30), (90, 45), (95, 50)]),
            [Some(9), Some(4), Some(1), None]
        );
    }

    #[test]
    fn waiting_for_a_processor_has_a_limit_too() {
        assert_eq!(
            epochs(&[(25, 10), (199, 10), (200, 10)]),
            [Some(8), Some(8), None]
        );
    }

    #[test]
    fn a_call_that_seems_over_at_the_first_look_gets_a_second() {
        assert_eq!(epochs(&[(80, 80), (85, 85)]), [Some(1), None]);
        assert_eq!(epochs(&[(300, 20), (305, 25)]), [Some(6), None]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_sleeping_thread_uses_no_time() {
        let before = ThreadClocks::now();
        std::thread::sleep(20 * MS);
        let after = ThreadClocks::now();
        let used = after.thread.zip(before.thread).map(|(a, b)| a - b);
        assert!(used.is_some_and(|used| used < 10 * MS), "{used:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_recent_reading_is_at_most_a_period_off() {
        for _ in 0..1_000 {
            let (recent, now) = (ThreadClocks::recent(), ThreadClocks::now());
            let (recent, now) = (recent.thread.unwrap(), now.thread.unwrap());
            assert!(recent < now + PERIOD, "{recent:?} at {now:?}");
        }
        std::thread::sleep(MS);
        let (before, recent) = (ThreadClocks::now(), ThreadClocks::recent());
        assert!(recent.thread >= before.thread, "read again after a period");
    }
}
