//! The last decisions, for explanations and for trials of new policies.

use std::sync::Arc;

use super::Scheduler;
use crate::decision::{Decision, History};
use crate::ids::RequestId;

impl Scheduler {
    /// The last decisions. Mostly their windows show no workers; see [`decisions`](Self::decisions).
    pub fn history(&self) -> &History {
        &self.history
    }

    /// At most this many of the last decisions as they were taken, oldest first. Takes time in proportion to
    /// the number of workers.
    pub fn decisions(&self, most: usize) -> Vec<Arc<Decision>> {
        let mut left = most;
        let mut found = self.decisions_that(|_| {
            let is_wanted = left > 0;
            left = left.saturating_sub(1);
            is_wanted
        });
        found.reverse();
        found
    }

    /// The decision of one window as it was taken, if it is still kept.
    pub fn decision(&self, window: u64) -> Option<Arc<Decision>> {
        let found = self.decisions_that(|decision| decision.window.id == window);
        found.into_iter().next()
    }

    /// The last kept decision about a request as it was taken; see [`History::about`].
    pub fn decision_about(&self, request: RequestId) -> Option<Arc<Decision>> {
        self.decision(self.history.about(request)?.window.id)
    }

    fn decisions_that(&self, wanted: impl FnMut(&Decision) -> bool) -> Vec<Arc<Decision>> {
        self.history.with_workers(self.workers.rows(), wanted)
    }
}
