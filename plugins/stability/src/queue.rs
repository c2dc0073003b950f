//! A queue per app (section III), longest waiting first.

use switchyard_sdk::catalog::App;
use switchyard_sdk::{AppId, Window};

use crate::score::UrgencySums;
use crate::settings::Deadlines;

/// Enough for any window: a host has at most a million pending requests.
const POSITION_BITS: u32 = 24;

/// Beyond this much slack over the most urgent request (twelve days) the order is that of arrival.
const LATER_MAX_US: u64 = (1 << (u64::BITS - POSITION_BITS)) - 1;

/// One app's pending requests.
#[derive(Clone, Debug)]
pub(crate) struct AppQueue {
    pub(crate) app: AppId,
    /// The app's SLO, in microseconds.
    pub(crate) tau_us: f64,
    /// Longest waiting first.
    tasks: Vec<WaitingTask>,
    /// Number of tasks, from the first, that a worker has.
    taken: usize,
    /// Sums over all tasks; only filled if a score is needed.
    sums: UrgencySums,
    /// Whether some request has a `min_quality`.
    has_wishes: bool,
    /// Buffers of [`sort`](Self::sort).
    keys: Vec<u64>,
    sorted: Vec<WaitingTask>,
}

/// One waiting request. Small, because queues are sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WaitingTask {
    /// Its wait in microseconds; see [`AppQueue::fill`].
    pub(crate) wait_us: f64,
    /// Its index in the window.
    pub(crate) at: u32,
    /// The accuracy that the client asks for, 0 to 1.
    min_quality: f32,
}

// === impl AppQueue ===

impl AppQueue {
    /// An empty queue of an app.
    pub(crate) fn new(app: App<'_>) -> Self {
        Self {
            app: app.id,
            // At least 1: urgency divides by it.
            tau_us: app.slo.max(1) as f64,
            tasks: Vec::new(),
            taken: 0,
            sums: UrgencySums::default(),
            has_wishes: false,
            keys: Vec::new(),
            sorted: Vec::new(),
        }
    }

    /// Reads the pending requests that have run no stage.
    ///
    /// The paper has one SLO for all requests, so that waiting time is urgency. A request with its
    /// own deadline is as urgent as one under the SLO with the same slack: its wait is tau less
    /// slack. That is the time since its arrival if its deadline is the SLO, and may be negative
    /// otherwise.
    pub(crate) fn fill(&mut self, window: &Window<'_>, deadlines: Deadlines) {
        self.tasks.clear();
        self.taken = 0;
        let now_us = window.now_us() as f64;
        for request in window.fresh_of(self.app) {
            let wait_us = match deadlines {
                Deadlines::Slo => now_us - request.arrival_us() as f64,
                Deadlines::Request => now_us + self.tau_us - request.deadline_us() as f64,
            };
            self.tasks.push(WaitingTask {
                wait_us,
                at: request.index() as u32,
                min_quality: request.min_quality() as f32,
            });
        }
        self.has_wishes = self.tasks.iter().any(|task| task.min_quality > 0.0);
        // Arrival order is sorted order, unless deadlines differ.
        if !self.tasks.is_sorted_by(|a, b| a.wait_us >= b.wait_us) {
            self.sort();
        }
    }

    /// Longest waiting first, then by arrival. Integers sort several times faster than tasks.
    fn sort(&mut self) {
        let waits = self.tasks.iter().map(|task| task.wait_us);
        let longest_us = waits.fold(f64::NEG_INFINITY, f64::max);
        let key = |(position, task): (u64, &WaitingTask)| {
            let later_us = (longest_us - task.wait_us) as u64;
            later_us.min(LATER_MAX_US) << POSITION_BITS | position
        };
        self.keys.clear();
        self.keys.extend((0..).zip(&self.tasks).map(key));
        self.keys.sort_unstable();
        let position = |key: &u64| (key & ((1 << POSITION_BITS) - 1)) as usize;
        let sorted = self.keys.iter().map(|key| self.tasks[position(key)]);
        self.sorted.clear();
        self.sorted.extend(sorted);
        std::mem::swap(&mut self.tasks, &mut self.sorted);
    }

    /// Fills the sums that [`score_after`](Self::score_after) reads.
    pub(crate) fn weigh(&mut self, clip: f64) {
        let waits = self.tasks.iter().map(|task| task.wait_us);
        self.sums.fill(waits, self.tau_us, clip);
    }

    /// Eq. 4 over this queue after a further wait of `longer_us`.
    pub(crate) fn score_after(&self, longer_us: f64) -> f64 {
        let wait_us = |at: usize| self.tasks[at].wait_us;
        self.sums.after(self.taken, longer_us, wait_us)
    }

    /// The tasks that no worker has, longest waiting first.
    pub(crate) fn waiting(&self) -> &[WaitingTask] {
        &self.tasks[self.taken..]
    }

    /// The wait of its most urgent task (w_max in eq. 6), in microseconds.
    pub(crate) fn longest_wait_us(&self) -> Option<f64> {
        self.waiting().first().map(|task| task.wait_us)
    }

    /// The number of the first `size` tasks that miss their SLO if answered `end_us` from now.
    pub(crate) fn late_among(&self, size: usize, end_us: f64) -> usize {
        let first = &self.waiting()[..size.min(self.waiting().len())];
        first.partition_point(|task| task.wait_us + end_us > self.tau_us)
    }

    /// The highest `min_quality` of the first `size` tasks.
    pub(crate) fn wished_accuracy(&self, size: usize) -> f64 {
        if !self.has_wishes {
            return 0.0;
        }
        let asked = self.waiting().iter().take(size);
        asked.fold(0.0, |most, task| most.max(f64::from(task.min_quality)))
    }

    /// Gives the first `size` to a worker.
    pub(crate) fn take(&mut self, size: usize) {
        self.taken += size;
    }

    /// Undoes the last [`take`](Self::take).
    pub(crate) fn untake(&mut self, size: usize) {
        self.taken -= size;
    }
}
