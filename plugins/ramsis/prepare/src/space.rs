//! The states (section 4.2): (queue length, slack), and the full state.

/// The states of a table, without the empty queue: that is no decision and is always followed by
/// one request with the whole deadline (eq. 1), so transitions go there directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateSpace {
    pub(crate) slo_us: u64,
    /// Ascending from 0 to `slo_us`.
    pub(crate) slack_us: Vec<u64>,
    pub(crate) queue_max: usize,
}

// === impl StateSpace ===

impl StateSpace {
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

    /// The state after an empty queue: one request that has just arrived.
    pub(crate) fn emptied(&self) -> usize {
        self.slacks() - 1
    }

    /// Queue length and slack of a state; of the full state the longest queue with slack 0.
    pub(crate) fn queue_and_slack(&self, state: usize) -> (usize, usize) {
        if state == self.full() {
            return (self.queue_max, 0);
        }
        (state / self.slacks() + 1, state % self.slacks())
    }
}
