//! The pending requests of one app, in the order in which they are served.

use crate::time::Time;
use crate::window::{RequestProgress, Window};

/// The pending requests of one app, as positions in the window: earliest deadline first, and then
/// those that will be late.
#[derive(Debug, Default)]
pub(super) struct AppQueue {
    pub(super) order: Vec<u32>,
    /// Deadline of its youngest request.
    pub(super) newest: Time,
    /// Requests with an earlier deadline will be late whatever is done.
    pub(super) hopeless_before: Time,
    /// Requests before this position are taken, or no worker has room for them.
    pub(super) next: usize,
}

// === impl AppQueue ===

impl AppQueue {
    /// Sorts those in time before the others, then by deadline, then by age, and keeps the first
    /// `needed`. Requests come by age, so they are sorted already when all have the same SLO.
    pub(super) fn sort(&mut self, deadlines: &[u64], needed: usize) {
        let hopeless_before = self.hopeless_before;
        let key = |&i: &u32| {
            let deadline = deadlines[i as usize];
            (Time(deadline) < hopeless_before, deadline, i)
        };
        if !self.order.is_sorted_by_key(key) {
            if needed < self.order.len() {
                self.order.select_nth_unstable_by_key(needed, key);
                self.order.truncate(needed);
            }
            self.order.sort_unstable_by_key(key);
        }
        self.order.truncate(needed);
    }

    pub(super) fn is_hopeless(&self, deadline: u64) -> bool {
        Time(deadline) < self.hopeless_before
    }

    /// The first request that is not taken.
    pub(super) fn first(&mut self, taken: &[bool]) -> Option<usize> {
        while let Some(&i) = self.order.get(self.next) {
            if !taken[i as usize] {
                return Some(i as usize);
            }
            self.next += 1;
        }
        None
    }

    /// Drops the requests that are not parked.
    pub(super) fn skip_fresh(&mut self, window: &Window) {
        let next = self.next;
        if window.requests.progress.is_empty() {
            self.next = self.order.len();
            return;
        }
        let mut at = 0;
        self.order.retain(|&i| {
            at += 1;
            at <= next || progress_of(window, i as usize).is_some()
        });
    }
}

/// The progress of request `i`. The rows ascend by position.
pub(super) fn progress_of(window: &Window, i: usize) -> Option<RequestProgress> {
    let parked = &window.requests.progress;
    let at = parked.binary_search_by_key(&(i as u32), |p| p.index);
    at.ok().map(|at| parked[at])
}
