//! The states (section 4.2): queue length and slack, and the full state.

/// The states of a table. The empty queue is none of them: what follows it is always one request
/// with the whole deadline ahead (eq. 1), so a transition to it goes there at once, and it is no
/// decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) slo_us: u64,
    /// Ascending from 0 to `slo_us`.
    pub(crate) slack_us: Vec<u64>,
    pub(crate) queue_max: usize,
}

// === impl Space ===

impl Space {
    pub(crate) fn slacks(&self) -> usize {
        self.slack_us.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue_max * self.slacks() + 1
    }

    pub(crate) fn state(&self, queued: usize, slack: usize) -> usize {
        (queued - 1) * self.slacks() + slack
    }

    /// More than `queue_max` requests.
    pub(crate) fn full(&self) -> usize {
        self.len() - 1
    }

    /// What follows an empty queue: one request that has just come.
    pub(crate) fn emptied(&self) -> usize {
        self.slacks() - 1
    }

    /// Queue length and slack that a state is treated as; the full state as the longest queue
    /// without slack.
    pub(crate) fn place(&self, state: usize) -> (usize, usize) {
        if state == self.full() {
            return (self.queue_max, 0);
        }
        (state / self.slacks() + 1, state % self.slacks())
    }
}
