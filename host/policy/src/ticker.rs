//! The thread that counts time for policies that run for long: one epoch per period.
//!
//! Most calls are over in microseconds, and a thread that interrupts everybody to count time for
//! nobody costs more than they do: it looks now and then whether a call is under way, and counts
//! while one is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two epochs under a call. Shorter ones drift on a busy machine and gain nothing
/// at budgets of milliseconds.
pub const PERIOD: Duration = Duration::from_micros(500);

/// Longest time between two looks for a call. Half of the smallest budget is not exceeded either.
const WATCH_MAX: Duration = Duration::from_millis(5);

/// Without a call for this long the thread sleeps, so that an idle server is quiet.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Nice value asked for; without the right to it the thread runs like any other.
const NICE: i32 = -10;

/// Calls its closure once per [`PERIOD`] while a call is under way, on absolute deadlines: a late
/// tick is made up for, so epochs count time and do not drift. Stops when dropped.
pub struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    asleep: AtomicBool,
    /// Time between two looks, in nanoseconds.
    watch_ns: AtomicU64,
    /// Calls begun so far; the thread looks whether it moved.
    begun: AtomicU64,
    /// Calls over so far; as many as begun when none runs.
    ended: AtomicU64,
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
            watch_ns: AtomicU64::new(nanoseconds(WATCH_MAX)),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
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

    /// Says that a call begins whose deadline counts epochs, and how long it may take.
    pub fn call_begins(&self, budget: Duration) -> Running<'_> {
        let watch = nanoseconds((budget / 2).max(PERIOD));
        if watch < self.shared.watch_ns.load(Ordering::Relaxed) {
            self.shared.watch_ns.fetch_min(watch, Ordering::Relaxed);
        }
        // Sequentially consistent with the thread's store to `asleep` and its look at
        // `begun`: one of the two sides sees the other.
        self.shared.begun.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
        Running(&self.shared)
    }

    /// Epochs that last about as long, counted from the end of one; at least one.
    pub fn epochs(time: Duration) -> u64 {
        let periods = (time + PERIOD / 2).as_micros() / PERIOD.as_micros();
        u64::try_from(periods).unwrap_or(u64::MAX).max(1)
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
        let mut now = Instant::now();
        let mut next = now + self.watch();
        let mut seen = self.begun.load(Ordering::SeqCst);
        let mut busy_at = now;
        while !self.stop.load(Ordering::SeqCst) {
            if now < next {
                thread::sleep(next - now);
                now = Instant::now();
                continue;
            }
            let ended = self.ended.load(Ordering::SeqCst);
            let begun = self.begun.load(Ordering::SeqCst);
            if ended == begun {
                next = now + self.watch();
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

    fn watch(&self) -> Duration {
        Duration::from_nanos(self.watch_ns.load(Ordering::Relaxed))
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

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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

    const BUDGET: Duration = Duration::from_millis(5);

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
    fn epochs_are_as_near_as_they_can_be() {
        assert_eq!(Ticker::epochs(Duration::from_millis(5)), 10);
        assert_eq!(Ticker::epochs(Duration::from_micros(749)), 1);
        assert_eq!(Ticker::epochs(Duration::from_micros(750)), 2);
        assert_eq!(Ticker::epochs(Duration::ZERO), 1);
    }

    #[test]
    fn ticks_count_time_without_drift() {
        let (count, ticker) = counter();
        let began = Instant::now();
        let _running = ticker.call_begins(BUDGET);
        thread::sleep(Duration::from_millis(300));
        let ticks = count.load(Ordering::Relaxed) as f64;
        let due = began.elapsed().as_secs_f64() / PERIOD.as_secs_f64();
        // Made-up ticks keep the count true even on a busy machine; the bound covers a
        // thread that is off the processor at the very moment of the look.
        assert!(ticks > due * 0.5 && ticks <= due + 1.0, "{ticks} of {due}");
    }

    #[test]
    fn short_calls_are_not_counted_for() {
        let (count, ticker) = counter();
        let began = Instant::now();
        let mut calls = 0;
        while began.elapsed() < Duration::from_millis(300) {
            drop(ticker.call_begins(BUDGET));
            thread::sleep(Duration::from_micros(100));
            calls += 1;
        }
        // One that is under way at a look by chance is counted for once.
        let ticks = count.load(Ordering::Relaxed);
        assert!(ticks < 20, "{ticks} ticks for {calls} calls");
    }

    #[test]
    fn looks_in_time_for_the_smallest_budget() {
        let (_, ticker) = counter();
        let watch_after = |budget_us| {
            drop(ticker.call_begins(Duration::from_micros(budget_us)));
            ticker.shared.watch()
        };
        assert_eq!(watch_after(1_000_000), WATCH_MAX);
        assert_eq!(watch_after(4_000), Duration::from_millis(2));
        assert_eq!(watch_after(600), PERIOD);
        assert_eq!(watch_after(1_000_000), PERIOD);
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
        assert!(ticker.shared.asleep.load(Ordering::SeqCst), "still looking");
        let running = ticker.call_begins(BUDGET);
        thread::sleep(IDLE_AFTER + Duration::from_millis(200));
        let during = count.load(Ordering::Relaxed);
        assert!(during > 0, "did not wake");
        assert!(
            !ticker.shared.asleep.load(Ordering::SeqCst),
            "fell asleep under a call"
        );
        drop(running);
    }
}
