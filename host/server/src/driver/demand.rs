//! The workers that a pool's load asks for: the metric that a fleet is scaled by.

use switchyard_core::time::{Micros, Time};

/// Part of their time in which workers compute at the wanted number. The rest absorbs bursts.
const UTILISATION: f64 = 0.7;

/// Length of a slot.
const SLOT: Micros = Micros::from_millis(1_000);

/// Slots that count: as long as a new worker takes to start.
const SLOTS: usize = 60;

/// Least time that the load is averaged over, also right after the start.
const TIME_MIN: Micros = Micros::from_millis(10_000);

/// The work that arrived in the last minute, also that of requests that were refused.
#[derive(Debug)]
pub(super) struct Demand {
    began: Time,
    /// Number of the newest slot: its beginning divided by [`SLOT`].
    newest: u64,
    /// Worker time of the arrivals in microseconds, by number modulo [`SLOTS`].
    work_us: [f64; SLOTS],
    /// The slot in which the number of workers was computed last.
    shown: Option<u64>,
}

// === impl Demand ===

impl Demand {
    /// Counts from `now`.
    pub(super) fn new(now: Time) -> Self {
        Self {
            began: now,
            newest: number(now),
            work_us: [0.0; SLOTS],
            shown: None,
        }
    }

    /// A request has arrived that takes a worker this long at least.
    pub(super) fn came(&mut self, now: Time, work_us: f64) {
        self.advance(now);
        self.work_us[position(self.newest)] += work_us;
    }

    /// The number of workers, at the first call in each slot.
    pub(super) fn news(&mut self, now: Time) -> Option<u32> {
        self.advance(now);
        if self.shown.replace(self.newest) == Some(self.newest) {
            return None;
        }
        Some(self.workers(now))
    }

    /// When the number may change although nothing arrives.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        let has_work = self.work_us.iter().any(|work_us| *work_us > 0.0);
        has_work.then(|| Time((self.newest + 1) * SLOT.0))
    }

    /// At least one: without it no load would show that more are needed.
    fn workers(&self, now: Time) -> u32 {
        let all = Micros(SLOT.0 * SLOTS as u64);
        let time = now.since(self.began).clamp(TIME_MIN, all);
        let work_us: f64 = self.work_us.iter().sum();
        let workers = work_us / (time.0 as f64 * UTILISATION);
        // A thousandth of a worker asks for no further one. A cast saturates.
        ((workers - 1e-3).ceil() as u32).max(1)
    }

    /// Empties the slots that have begun since the last call.
    fn advance(&mut self, now: Time) {
        let newest = number(now);
        let passed = newest.saturating_sub(self.newest).min(SLOTS as u64);
        for slot in newest + 1 - passed..=newest {
            self.work_us[position(slot)] = 0.0;
        }
        self.newest = self.newest.max(newest);
    }
}

fn number(time: Time) -> u64 {
    time.0 / SLOT.0
}

fn position(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// The numbers of workers at the end of each second in which this many requests of 35 ms arrive.
    fn shown(rates: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let mut demand = Demand::new(Time(0));
        let seconds = (1..).zip(rates);
        let shown = seconds.map(|(second, rate)| {
            let now = Time(second * SECOND - 1);
            (0..rate).for_each(|_| demand.came(now, 35_000.0));
            demand.news(now).unwrap_or_default()
        });
        shown.collect()
    }

    #[test]
    fn the_number_of_workers_is_rate_times_work_over_utilisation() {
        // 100/s x 35 ms = 3.5 busy workers; 3.5 / 0.7 = 5. 101/s: 5.05, so 6.
        assert_eq!(shown([100; 90]).last(), Some(&5));
        assert_eq!(shown([101; 90]).last(), Some(&6));
        assert_eq!(shown([0; 90]).last(), Some(&1));
    }

    #[test]
    fn it_follows_the_load_within_a_minute_and_a_start_is_no_burst() {
        // 400 requests of 35 ms in the first second are 14 s of work: over 10 s and 0.7, two workers.
        assert_eq!(shown([400]), [2]);
        let rates = [100; 60].into_iter().chain([0; 61]);
        let shown = shown(rates);
        assert_eq!((shown[59], shown[60 + 29], shown[60 + 60]), (5, 3, 1));
    }

    #[test]
    fn it_is_computed_once_a_second_and_wakes_while_it_falls() {
        let mut demand = Demand::new(Time(0));
        assert_eq!(demand.news(Time(1)), Some(1));
        assert_eq!((demand.news(Time(2)), demand.next_wakeup()), (None, None));
        demand.came(Time(3), 1e9);
        assert_eq!(demand.next_wakeup(), Some(Time(SECOND)));
        assert_eq!(
            demand.news(Time(SECOND)),
            Some(143),
            "1000 s over 10 s and 0.7"
        );
        assert_eq!(demand.news(Time(61 * SECOND)), Some(1));
        assert_eq!(demand.next_wakeup(), None);
    }
}
