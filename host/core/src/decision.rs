//! What was seen and what was decided, for the last windows: the answer to "why?", and the
//! windows that a new policy is tried on before it is trusted.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::plan::Plan;
use crate::window::Window;

/// One window, the plan that was applied, and whose it was.
#[derive(Clone, Debug, Default)]
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
    /// Boxed: a decision is a kilobyte of columns' heads, moved with every window.
    kept: VecDeque<Box<Decision>>,
    capacity: usize,
    /// A decision that was not kept, for its buffers.
    spare: Option<Box<Decision>>,
}

// === impl History ===

impl History {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            kept: VecDeque::with_capacity(capacity),
            capacity,
            spare: None,
        }
    }

    /// An empty decision with the buffers of the oldest, once the history is full.
    pub(crate) fn buffers(&mut self) -> Box<Decision> {
        let oldest = match self.kept.len() < self.capacity {
            true => None,
            false => self.spare.take().or_else(|| self.kept.pop_front()),
        };
        let mut decision = oldest.unwrap_or_default();
        decision.window.clear();
        decision.plan.clear();
        decision
    }

    pub(crate) fn record(&mut self, decision: Box<Decision>) {
        if self.capacity > 0 {
            self.kept.push_back(decision);
        } else {
            self.spare = Some(decision);
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Decision> {
        self.kept.iter().map(Box::as_ref)
    }

    /// The decision of one window, if it is still kept.
    pub fn get(&self, window: u64) -> Option<&Decision> {
        self.iter().rev().find(|d| d.window.id == window)
    }
}
