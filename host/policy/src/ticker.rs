//! The thread that ends epochs under calls that run long: one per period, for as long as such a
//! call runs.
//!
//! Nearly every call ends within microseconds, and the thread never sees it: while calls come and
//! go it only looks, a few hundred times a second, whether one runs at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two epochs under a call. Shorter ones drift on a busy machine and gain nothing at
/// budgets of milliseconds.
pub const PERIOD: Duration = Duration::from_micros(500);

/// Longest time between two looks whether a call runs; half the shortest budget where that is
/// shorter, so that a call is seen well before its end.
const LOOK_MAX: Duration = Duration::from_millis(2);

/// Without a call for this long the thread sleeps, so that an idle server is quiet.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Nice value asked for; without the right to it the thread runs like any other.
const NICE: i32 = -10;

/// Calls its closure once per [`PERIOD`] under a call, on absolute deadlines: a late tick is made
/// up for, so epochs count time and do not drift. Stops when dropped.
pub struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    asleep: AtomicBool,
    /// Calls begun so far; the thread looks whether it moved.
    begun: AtomicU64,
    /// Calls over so far; as many as begun when none runs.
    ended: AtomicU64,
    /// Time between two looks, in microseconds.
    look_us: AtomicU64,
}

/// A call whose deadline counts epochs; it ends when this is dropped.
#[must_use]
pub struct Running<'a>(&'a Shared);

// === impl Ticker ===

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(tick: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            look_us: AtomicU64::new(LOOK_MAX.as_micros() as u64),
        });
        let thread = thread::Builder::new()
            .name("epoch-ticker".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run(tick)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Says that a call begins which is to be cut after `budget`.
    pub fn call_begins(&self, budget: Duration) -> Running<'_> {
        self.shared.look_within(budget / 2);
        // Sequentially consistent with the thread's store to `asleep` and its look at
        // `begun`: one of the two sides sees the other.
        self.shared.begun.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
        Running(&self.shared)
    }

    /// Epochs that last at least `time` together, from the end of one.
    pub fn epochs(time: Duration) -> u64 {
        let periods = time.as_micros().div_ceil(PERIOD.as_micros());
        u64::try_from(periods).unwrap_or(u64::MAX)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the epoch ticker had panicked");
        }
    }
}

// === impl Shared ===

impl Shared {
    fn run(&self, tick: impl Fn()) {
        raise_priority();
        while !self.stop.load(Ordering::SeqCst) {
            let seen = self.tick_until_idle(&tick);
            self.sleep_while_begun_is(seen);
        }
    }

    /// Returns how many calls had begun when it found that none has for a while and none
    /// runs.
    fn tick_until_idle(&self, tick: &impl Fn()) -> u64 {
        let mut next = Instant::now() + self.look();
        let mut seen = self.begun.load(Ordering::SeqCst);
        let mut busy_at = next;
        while !self.stop.load(Ordering::SeqCst) {
            let now = Instant::now();
            if now < next {
                thread::sleep(next - now);
                continue;
            }
            let ended = self.ended.load(Ordering::SeqCst);
            let begun = self.begun.load(Ordering::SeqCst);
            if ended == begun {
                next = now + self.look();
            } else {
                tick();
                next += PERIOD;
            }
            if begun != seen || ended != begun {
                (seen, busy_at) = (begun, now);
            } else if now.saturating_duration_since(busy_at) > IDLE_AFTER {
                break;
            }
        }
        seen
    }

    fn look(&self) -> Duration {
        Duration::from_micros(self.look_us.load(Ordering::Relaxed))
    }

    fn look_within(&self, time: Duration) {
        let us = u64::try_from(time.max(PERIOD).as_micros()).unwrap_or(u64::MAX);
        // Mostly nothing is written: budgets are few and stay.
        if us < self.look_us.load(Ordering::Relaxed) {
            self.look_us.fetch_min(us, Ordering::Relaxed);
        }
    }

    fn sleep_while_begun_is(&self, seen: u64) {
        self.asleep.store(true, Ordering::SeqCst);
        while self.begun.load(Ordering::SeqCst) == seen && !self.stop.load(Ordering::SeqCst) {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

// === impl Running ===

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(target_os = "linux")]
fn raise_priority() {
    // On Linux the priority is the calling thread's own.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "the epoch ticker runs at normal priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn raise_priority() {}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> (Arc<AtomicU64>, Ticker) {
        let count = Arc::new(AtomicU64::new(0));
        let ticker = Ticker::start({
            let count = Arc::clone(&count);
            move || {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        (count, ticker.expect("a thread"))
    }

    #[test]
    fn epochs_are_rounded_up() {
        assert_eq!(Ticker::epochs(Duration::from_millis(5)), 10);
        assert_eq!(Ticker::epochs(Duration::from_micros(501)), 2);
        assert_eq!(Ticker::epochs(Duration::ZERO), 0);
    }

    #[test]
    fn ticks_count_time_without_drift() {
        let (count, ticker) = counter();
        let began = Instant::now();
        let _running = ticker.call_begins(LOOK_MAX);
        thread::sleep(Duration::from_millis(300));
        let ticks = count.load(Ordering::Relaxed) as f64;
        let due = began.elapsed().as_secs_f64() / PERIOD.as_secs_f64();
        // Made-up ticks keep the count true even on a busy machine; the bound covers the first
        // look and a thread that is off the processor at the very moment of this one.
        assert!(ticks > due * 0.5 && ticks <= due + 1.0, "{ticks} of {due}");
    }

    #[test]
    fn nothing_ticks_between_calls() {
        let (count, ticker) = counter();
        for _ in 0..50 {
            drop(ticker.call_begins(LOOK_MAX));
            thread::sleep(Duration::from_millis(1));
        }
        // A look can fall into a call, however short.
        let ticks = count.load(Ordering::Relaxed);
        assert!(ticks < 10, "{ticks}");
    }

    #[test]
    fn looks_follow_the_shortest_budget() {
        let (_, ticker) = counter();
        assert_eq!(ticker.shared.look(), LOOK_MAX);
        for (budget_us, look_us) in [(5_000, 2_000), (3_000, 1_500), (4_000, 1_500), (1, 500)] {
            drop(ticker.call_begins(Duration::from_micros(budget_us)));
            assert_eq!(ticker.shared.look(), Duration::from_micros(look_us));
        }
    }

    #[test]
    fn stops_when_dropped() {
        let (count, ticker) = counter();
        drop(ticker);
        let after = count.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(count.load(Ordering::Relaxed), after);
    }

    #[test]
    fn sleeps_when_idle_and_wakes_for_a_call() {
        let (count, ticker) = counter();
        thread::sleep(IDLE_AFTER + Duration::from_millis(200));
        assert!(ticker.shared.asleep.load(Ordering::SeqCst), "still ticking");
        let before = count.load(Ordering::Relaxed);
        let running = ticker.call_begins(LOOK_MAX);
        thread::sleep(IDLE_AFTER + Duration::from_millis(200));
        let during = count.load(Ordering::Relaxed);
        assert!(during > before, "did not wake");
        assert!(
            !ticker.shared.asleep.load(Ordering::SeqCst),
            "fell asleep under a call"
        );
        drop(running);
    }
}
