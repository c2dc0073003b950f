//! The load monitor: arrivals per second and app over the last 500 ms.

use crate::ids::AppId;
use crate::time::{Micros, Time};

/// Length of the moving window (RAMSIS section 5 uses the same).
pub const LOAD_WINDOW: Micros = Micros::from_millis(500);

/// The window moves in steps of this size.
const BUCKET: Micros = Micros::from_millis(10);
const BUCKETS: usize = (LOAD_WINDOW.0 / BUCKET.0) as usize;

/// Counts arrivals in a ring of 10 ms buckets per app.
#[derive(Clone, Debug, Default)]
pub struct LoadMonitor {
    /// `BUCKETS` counts per app, one app after the other.
    counts: Vec<u32>,
    totals: Vec<u32>,
    /// Number of the newest bucket since the clock's zero.
    newest: u64,
}

// === impl LoadMonitor ===

impl LoadMonitor {
    /// A monitor for this many apps.
    pub fn new(apps: usize) -> Self {
        Self {
            counts: vec![0; apps * BUCKETS],
            totals: vec![0; apps],
            newest: 0,
        }
    }

    /// Counts one arrival.
    pub fn record(&mut self, now: Time, app: AppId) {
        self.advance(now);
        let Some(total) = self.totals.get_mut(app.index()) else {
            return;
        };
        *total += 1;
        self.counts[app.index() * BUCKETS + (self.newest % BUCKETS as u64) as usize] += 1;
    }

    /// Arrivals per second of each app, in the catalog's order.
    pub fn rates(&mut self, now: Time) -> impl Iterator<Item = f64> + '_ {
        self.advance(now);
        self.totals.iter().map(|&total| per_second(total))
    }

    /// Arrivals per second of one app by the time of the last [`advance`](Self::advance).
    pub(crate) fn rate(&self, app: AppId) -> f64 {
        self.totals.get(app.index()).map_or(0.0, |&t| per_second(t))
    }

    /// Forgets arrivals that are older than the window.
    pub(crate) fn advance(&mut self, now: Time) {
        let bucket = now.0 / BUCKET.0;
        let steps = bucket.saturating_sub(self.newest).min(BUCKETS as u64);
        self.newest = self.newest.max(bucket);
        for step in 0..steps {
            let slot = ((self.newest - step) % BUCKETS as u64) as usize;
            for (app, total) in self.totals.iter_mut().enumerate() {
                *total -= std::mem::take(&mut self.counts[app * BUCKETS + slot]);
            }
        }
    }
}

fn per_second(total: u32) -> f64 {
    f64::from(total) / LOAD_WINDOW.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_arrivals_show_their_rate_and_then_fade() {
        let mut monitor = LoadMonitor::new(2);
        for ms in 0..2_000 {
            monitor.record(Time(ms * 1_000), AppId(1));
        }
        let at = Time(1_999_000);
        assert_eq!(monitor.rates(at).collect::<Vec<_>>(), [0.0, 1_000.0]);
        let half = at + Micros::from_millis(250);
        assert_eq!(monitor.rates(half).collect::<Vec<_>>(), [0.0, 500.0]);
        let gone = at + LOAD_WINDOW;
        assert_eq!(monitor.rates(gone).collect::<Vec<_>>(), [0.0, 0.0]);
    }

    #[test]
    fn a_clock_that_stands_still_loses_nothing() {
        let mut monitor = LoadMonitor::new(1);
        for _ in 0..10 {
            monitor.record(Time(7), AppId(0));
        }
        assert_eq!(monitor.rates(Time(7)).collect::<Vec<_>>(), [20.0]);
    }
}
