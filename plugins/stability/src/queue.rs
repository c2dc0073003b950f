//! A queue per app (section III): what waits in it, longest waiting first.

use switchyard_sdk::catalog::App;
use switchyard_sdk::{AppId, Window};

use crate::score::Sums;
use crate::settings::Deadlines;

/// Enough for any window: a host lets a million requests wait at most.
const POSITION_BITS: u32 = 24;

/// Requests this much less urgent than the most urgent one are in the order of their arrival:
/// twelve days.
const LATER_MAX_US: u64 = (1 << (u64::BITS - POSITION_BITS)) - 1;

/// One app's pending requests.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) app: AppId,
    /// The SLO that waiting is measured by, in microseconds.
    pub(crate) tau_us: f64,
    /// Longest waiting first.
    tasks: Vec<Task>,
    /// So many of the first have been given to a worker.
    taken: usize,
    /// Of all its tasks; made only where a score is asked for.
    sums: Sums,
    /// Some client asks for an accuracy.
    has_wishes: bool,
    /// What [`sort`](Self::sort) works on.
    keys: Vec<u64>,
    sorted: Vec<Task>,
}

/// One request. Small, because queues are sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    /// How long it has waited, in microseconds; see [`Queue::fill`].
    pub(crate) wait_us: f64,
    /// Its position in the window.
    pub(crate) at: u32,
    /// The accuracy its client asks for, 0 to 1.
    min_accuracy: f32,
}

// === impl Queue ===

impl Queue {
    /// An empty queue of an app.
    pub(crate) fn new(app: App<'_>) -> Self {
        Self {
            app: app.id,
            // An SLO of nothing would divide by it.
            tau_us: app.slo.max(1) as f64,
            tasks: Vec::new(),
            taken: 0,
            sums: Sums::default(),
            has_wishes: false,
            keys: Vec::new(),
            sorted: Vec::new(),
        }
    }

    /// Takes in what is pending and has run no stage.
    ///
    /// The paper has one SLO for all requests, so that waiting time says how urgent one is. A
    /// request with a deadline of its own is as urgent as one under the SLO with the same slack:
    /// its wait counts as tau less slack, which is the time since its arrival where its deadline
    /// is the SLO, and may be negative where it is longer.
    pub(crate) fn fill(&mut self, window: &Window<'_>, deadlines: Deadlines) {
        self.tasks.clear();
        self.taken = 0;
        let now_us = window.now_us() as f64;
        for request in window.fresh_of(self.app) {
            let wait_us = match deadlines {
                Deadlines::Slo => now_us - request.arrival_us() as f64,
                Deadlines::Request => now_us + self.tau_us - request.deadline_us() as f64,
            };
            self.tasks.push(Task {
                wait_us,
                at: request.index() as u32,
                min_accuracy: request.min_accuracy() as f32,
            });
        }
        self.has_wishes = self.tasks.iter().any(|task| task.min_accuracy > 0.0);
        // In the order of arrival they are sorted already, unless deadlines differ.
        if !self.tasks.is_sorted_by(|a, b| a.wait_us >= b.wait_us) {
            self.sort();
        }
    }

    /// Longest waiting first, of equal ones the first to arrive. Plain integers sort several times
    /// faster than tasks.
    fn sort(&mut self) {
        let waits = self.tasks.iter().map(|task| task.wait_us);
        let longest_us = waits.fold(f64::NEG_INFINITY, f64::max);
        let key = |(position, task): (u64, &Task)| {
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

    /// Makes the sums that [`score_after`](Self::score_after) reads.
    pub(crate) fn weigh(&mut self, clip: f64) {
        let waits = self.tasks.iter().map(|task| task.wait_us);
        self.sums.fill(waits, self.tau_us, clip);
    }

    /// Eq. 4 over this queue when all that is left in it has waited `longer_us` more.
    pub(crate) fn score_after(&self, longer_us: f64) -> f64 {
        let wait_us = |at: usize| self.tasks[at].wait_us;
        self.sums.after(self.taken, longer_us, wait_us)
    }

    /// What waits and no worker has been given, longest waiting first.
    pub(crate) fn waiting(&self) -> &[Task] {
        &self.tasks[self.taken..]
    }

    /// The wait of its most urgent task (w_max in eq. 6), in microseconds.
    pub(crate) fn longest_wait_us(&self) -> Option<f64> {
        self.waiting().first().map(|task| task.wait_us)
    }

    /// How many of the first `size` miss their SLO when they are answered in `end_us`.
    pub(crate) fn late_among(&self, size: usize, end_us: f64) -> usize {
        let first = &self.waiting()[..size.min(self.waiting().len())];
        first.partition_point(|task| task.wait_us + end_us > self.tau_us)
    }

    /// The highest accuracy that any of the first `size` clients asks for.
    pub(crate) fn wished_accuracy(&self, size: usize) -> f64 {
        if !self.has_wishes {
            return 0.0;
        }
        let asked = self.waiting().iter().take(size);
        asked.fold(0.0, |most, task| most.max(f64::from(task.min_accuracy)))
    }

    /// Gives the first `size` to a worker.
    pub(crate) fn take(&mut self, size: usize) {
        self.taken += size;
    }

    /// Takes back what was given last.
    pub(crate) fn untake(&mut self, size: usize) {
        self.taken -= size;
    }
}
