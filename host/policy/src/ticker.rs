//! The thread that counts time for policies that run for long: one epoch per period.
//!
//! Most calls end within microseconds. A thread that ticked all the time would interrupt them and
//! cost more than they do. So this thread looks now and then whether a call is under way, and ticks
//! only while one is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use switchyard_threads::ServiceThread;

/// Time between two epochs under a call. Shorter ones drift on a busy machine and gain nothing
/// at budgets of milliseconds.
pub const PERIOD: Duration = Duration::from_micros(500);

/// Longest time between two looks for a call. Half of the smallest budget is the other limit.
const WATCH_MAX: Duration = Duration::from_millis(5);

/// Without a call for this long the thread sleeps, so that an idle server is quiet.
const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Nice value that the thread asks for. Without the right to it, the thread runs at normal
/// priority.
const NICE: i32 = -10;

/// Calls its closure once per [`PERIOD`] while a call is under way, on absolute deadlines: a late
/// tick is made up for, so epochs count time and do not drift. Stops when dropped.
pub struct Ticker {
    counts: Arc<CallCounts>,
    // Dropped in this order: the channel closes, which ends the thread's sleep, and the thread is
    // stopped and joined.
    wake: SyncSender<()>,
    _thread: ServiceThread,
}

struct CallCounts {
    /// Set once, when the ticker is dropped.
    stopping: AtomicBool,
    /// Whether the thread sleeps until it is woken.
    asleep: AtomicBool,
    /// Time between two looks, in nanoseconds.
    watch_ns: AtomicU64,
    /// Calls begun so far.
    begun: AtomicU64,
    /// Calls ended so far; equal to `begun` when no call is under way.
    ended: AtomicU64,
}

/// The thread's side of a ticker.
struct TickerThread {
    counts: Arc<CallCounts>,
    woken: Receiver<()>,
}

/// A call whose deadline counts epochs. It ends when this is dropped.
#[must_use]
pub struct RunningCall<'a>(&'a CallCounts);

// === impl Ticker ===

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(tick: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let counts = Arc::new(CallCounts {
            stopping: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            watch_ns: AtomicU64::new(nanoseconds(WATCH_MAX)),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        });
        let (wake, woken) = mpsc::sync_channel(1);
        let body = TickerThread {
            counts: Arc::clone(&counts),
            woken,
        };
        let thread = ServiceThread::spawn("epoch-ticker", move || body.run(tick))?;
        let thread = thread.with_stop({
            let counts = Arc::clone(&counts);
            move || counts.stopping.store(true, Ordering::SeqCst)
        });
        Ok(Self {
            counts,
            wake,
            _thread: thread,
        })
    }

    /// Counts a call whose deadline counts epochs, with the time that it may take.
    pub fn call_begins(&self, budget: Duration) -> RunningCall<'_> {
        let watch = nanoseconds((budget / 2).max(PERIOD));
        if watch < self.counts.watch_ns.load(Ordering::Relaxed) {
            self.counts.watch_ns.fetch_min(watch, Ordering::Relaxed);
        }
        // Sequentially consistent with the thread's store to `asleep` and its load of `begun`:
        // one of the two sides sees the other.
        self.counts.begun.fetch_add(1, Ordering::SeqCst);
        if self.counts.asleep.load(Ordering::SeqCst) {
            // Full: another call has woken the thread. Closed: the thread has panicked.
            let _ = self.wake.try_send(());
        }
        RunningCall(&self.counts)
    }

    /// The number of epochs nearest to a time, counted from the end of an epoch; at least 1.
    pub fn epochs(time: Duration) -> u64 {
        let periods = (time + PERIOD / 2).as_micros() / PERIOD.as_micros();
        u64::try_from(periods).unwrap_or(u64::MAX).max(1)
    }
}

// === impl TickerThread ===

impl TickerThread {
    fn run(&self, tick: impl Fn()) {
        raise_priority();
        while !self.is_stopped() {
            let seen = self.tick_until_idle(&tick);
            self.sleep_while_begun_is(seen);
        }
    }

    /// Returns the number of calls that had begun once none has begun for [`IDLE_AFTER`] and none
    /// is under way.
    fn tick_until_idle(&self, tick: &impl Fn()) -> u64 {
        let counts = &*self.counts;
        let mut now = Instant::now();
        let mut next = now + counts.watch();
        let mut seen = counts.begun.load(Ordering::SeqCst);
        let mut busy_at = now;
        while !self.is_stopped() {
            if now < next {
                thread::sleep(next - now);
                now = Instant::now();
                continue;
            }
            let ended = counts.ended.load(Ordering::SeqCst);
            let begun = counts.begun.load(Ordering::SeqCst);
            if ended == begun {
                next = now + counts.watch();
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

    fn sleep_while_begun_is(&self, seen: u64) {
        self.counts.asleep.store(true, Ordering::SeqCst);
        while self.counts.begun.load(Ordering::SeqCst) == seen && !self.is_stopped() {
            if self.woken.recv().is_err() {
                // The ticker is being dropped.
                break;
            }
        }
        self.counts.asleep.store(false, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.counts.stopping.load(Ordering::SeqCst)
    }
}

// === impl CallCounts ===

impl CallCounts {
    fn watch(&self) -> Duration {
        Duration::from_nanos(self.watch_ns.load(Ordering::Relaxed))
    }
}

// === impl RunningCall ===

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(target_os = "linux")]
fn raise_priority() {
    // On Linux this is the priority of the calling thread, not of the process.
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
    fn epochs_are_rounded_to_the_nearest() {
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
        // Late ticks are made up for, so the count holds on a busy machine. The bound covers a
        // thread that waits for a processor at the moment of the assertion.
        assert!(ticks > due * 0.5 && ticks <= due + 1.0, "{ticks} of {due}");
    }

    #[test]
    fn short_calls_cost_no_ticks() {
        let (count, ticker) = counter();
        let began = Instant::now();
        let mut calls = 0;
        while began.elapsed() < Duration::from_millis(300) {
            drop(ticker.call_begins(BUDGET));
            thread::sleep(Duration::from_micros(100));
            calls += 1;
        }
        // A call that is under way at a look leads to one tick.
        let ticks = count.load(Ordering::Relaxed);
        assert!(ticks < 20, "{ticks} ticks for {calls} calls");
    }

    #[test]
    fn looks_in_time_for_the_smallest_budget() {
        let (_, ticker) = counter();
        let watch_after = |budget_us| {
            drop(ticker.call_begins(Duration::from_micros(budget_us)));
            ticker.counts.watch()
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
        assert!(ticker.counts.asleep.load(Ordering::SeqCst), "still looking");
        let running = ticker.call_begins(BUDGET);
        thread::sleep(IDLE_AFTER + Duration::from_millis(200));
        let during = count.load(Ordering::Relaxed);
        assert!(during > 0, "did not wake");
        assert!(
            !ticker.counts.asleep.load(Ordering::SeqCst),
            "fell asleep under a call"
        );
        drop(running);
    }
}
