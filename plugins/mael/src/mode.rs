//! SliceMode (Algorithm 3, lines 24 to 27): whether long tasks are cut.

use serde::{Deserialize, Serialize};

use crate::queue::{EntryState, QueueEntry, RunLength, WorkerQueue};

/// The flag. It outlives its window: slices have to exist before the short task that passes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SliceMode {
    pub(crate) on: bool,
    /// When it last helped or was turned on, on the host's clock.
    helped_us: u64,
}

// === impl SliceMode ===

impl SliceMode {
    /// Updates the flag from the queues of a window with its new tasks.
    pub(crate) fn update(&mut self, now_us: u64, hold_us: u64, queues: &[WorkerQueue]) {
        if !self.on {
            if queues.iter().any(is_blocked) {
                *self = Self {
                    on: true,
                    helped_us: now_us,
                };
            }
            return;
        }
        // Without slices their benefit is unknown.
        let mut sliced = queues.iter().filter(|queue| has_slices(queue)).peekable();
        if sliced.peek().is_none() {
            return;
        }
        if sliced.any(helps) {
            self.helped_us = now_us;
        } else if now_us.saturating_sub(self.helped_us) >= hold_us {
            self.on = false;
        }
    }
}

/// Whether a new task is expected to miss its SLO and would meet it without the long unsliced tasks
/// before it.
fn is_blocked(queue: &WorkerQueue) -> bool {
    let mut end_us = queue.busy_us;
    let mut long_us = if queue.runs_long { queue.busy_us } else { 0 };
    for entry in &queue.order {
        end_us += entry.work_us;
        if entry.length == RunLength::Long {
            long_us += entry.work_us;
            continue;
        }
        let is_new = matches!(entry.state, EntryState::Pending(_));
        if is_new && entry.missed(end_us) > 0.0 && entry.missed(end_us - long_us) == 0.0 {
            return true;
        }
    }
    false
}

fn has_slices(queue: &WorkerQueue) -> bool {
    let is_slice =
        |entry: &QueueEntry| matches!(entry.length, RunLength::Begun | RunLength::Sliced);
    queue.order.iter().any(is_slice)
}

/// Whether a task is before slices of a begun task, and would miss its SLO if that task ran
/// unsliced.
fn helps(queue: &WorkerQueue) -> bool {
    let mut later_us: u64 = queue
        .order
        .iter()
        .filter(|entry| entry.length == RunLength::Begun)
        .map(|entry| entry.work_us)
        .sum();
    let mut end_us = queue.busy_us;
    queue.order.iter().any(|entry| {
        end_us += entry.work_us;
        if entry.length == RunLength::Begun {
            later_us -= entry.work_us;
        }
        later_us > 0 && entry.missed(end_us + later_us) > 0.0
    })
}
