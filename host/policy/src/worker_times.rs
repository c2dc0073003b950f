//! The times of the workers as components are shown them: none is before `now`. The scheduler moves no times
//! that have passed, so that its windows do not take longer the more workers there are.

use switchyard_core::time::Time;
use switchyard_core::window::Window;

/// The two columns, if the window has times that have passed.
#[derive(Default)]
pub(crate) struct WorkerTimes {
    busy_until: Vec<u64>,
    free_at: Vec<u64>,
}

// === impl WorkerTimes ===

impl WorkerTimes {
    pub(crate) fn fill(&mut self, window: &Window) {
        if window.changes.has_past_times {
            move_to(window.now, &window.workers.busy_until, &mut self.busy_until);
            move_to(window.now, &window.workers.free_at, &mut self.free_at);
        }
    }

    pub(crate) fn busy_until<'a>(&'a self, window: &'a Window) -> &'a [u64] {
        match window.changes.has_past_times {
            true => &self.busy_until,
            false => &window.workers.busy_until,
        }
    }

    pub(crate) fn free_at<'a>(&'a self, window: &'a Window) -> &'a [u64] {
        match window.changes.has_past_times {
            true => &self.free_at,
            false => &window.workers.free_at,
        }
    }
}

fn move_to(now: Time, from: &[u64], to: &mut Vec<u64>) {
    to.clear();
    to.extend(from.iter().map(|&at| at.max(now.0)));
}
