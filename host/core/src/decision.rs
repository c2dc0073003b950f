//! What was seen and what was decided, for the last windows: the answer to "why?", and the
//! windows that a new policy is tried on before it is trusted.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::plan::Plan;
use crate::window::Window;

/// One window, the plan that was applied, and whose it was.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What was seen.
    pub window: Window,
    /// What was done.
    pub plan: Plan,
    /// Label of the policy whose plan it was.
    pub by: Arc<str>,
}

/// The last decisions. Buffers of the oldest are reused for the newest, so a running
/// scheduler records without allocating.
#[derive(Debug)]
pub struct History {
    kept: VecDeque<Decision>,
    capacity: usize,
}

// === impl History ===

impl History {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            kept: VecDeque::with_capacity(capacity),
            capacity,
        }
    }

    /// Empty buffers, of the oldest decision once the history is full.
    pub(crate) fn buffers(&mut self) -> (Window, Plan) {
        if self.kept.len() < self.capacity {
            return Default::default();
        }
        let Some(oldest) = self.kept.pop_front() else {
            return Default::default();
        };
        let (mut window, mut plan) = (oldest.window, oldest.plan);
        window.clear();
        plan.clear();
        (window, plan)
    }

    pub(crate) fn record(&mut self, decision: Decision) {
        if self.capacity > 0 {
            self.kept.push_back(decision);
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.kept.iter()
    }

    /// The decision of one window, if it is still kept.
    pub fn get(&self, window: u64) -> Option<&Decision> {
        self.kept.iter().rev().find(|d| d.window.id == window)
    }
}
