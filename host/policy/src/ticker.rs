//! The thread that counts time for running policies: one epoch per period.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two epochs. Shorter ones drift on a busy machine and gain nothing at
/// budgets of milliseconds.
pub const PERIOD: Duration = Duration::from_micros(500);

/// Without a call for this long the thread sleeps, so that an idle server is quiet.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Nice value asked for; without the right to it the thread runs like any other.
const NICE: i32 = -10;

/// Calls its closure once per [`PERIOD`], on absolute deadlines: a late tick is made up for,
/// so epochs count time and do not drift. Stops when dropped.
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

    /// Says that a call begins whose deadline counts epochs.
    pub fn call_begins(&self) -> Running<'_> {
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
        let mut next = Instant::now() + PERIOD;
        let mut seen = self.begun.load(Ordering::SeqCst);
        let mut busy_at = next;
        while !self.stop.load(Ordering::SeqCst) {
            let now = Instant::now();
            if now < next {
                thread::sleep(next - now);
                continue;
            }
            tick();
            next += PERIOD;
            let ended = self.ended.load(Ordering::SeqCst);
            let begun = self.begun.load(Ordering::SeqCst);
            if begun != seen || ended != begun {
                (seen, busy_at) = (begun, now);
            } else if now.saturating_duration_since(busy_at) > IDLE_AFTER {
                break;
            }
        }
        seen
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
        let _running = ticker.call_begins();
        thread::sleep(Duration::from_millis(300));
        let ticks = count.load(Ordering::Relaxed) as f64;
        let due = began.elapsed().as_secs_f64() / PERIOD.as_secs_f64();
        // Made-up ticks keep the count true even on a busy machine; the bound covers a
        // thread that is off the processor at the very moment of the look.
        assert!(ticks > due * 0.5 && ticks <= due + 1.0, "{ticks} of {due}");
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
        let running = ticker.call_begins();
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
