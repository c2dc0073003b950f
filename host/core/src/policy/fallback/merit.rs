//! The order of the choices for a batch.

use crate::ids::WorkerId;
use crate::time::Time;

/// The worth of a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merit {
    pub(super) standing: Standing,
    pub(super) end: Time,
    pub(super) worker: WorkerId,
}

/// The class of a choice, and its worth among those of its class.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing {
    /// In time, and fast enough for the queue; with its accuracy.
    KeepsUp(f64),
    /// In time; with its requests per second.
    InTime(f64),
    Late,
}

// === impl Merit ===

impl Merit {
    pub(super) fn is_better_than(self, other: Self) -> bool {
        let (rank, worth) = self.standing.rank();
        let (other_rank, other_worth) = other.standing.rank();
        let by_worth = worth.total_cmp(&other_worth);
        // Among equals, the one that ends first, on the first worker.
        let order = rank.cmp(&other_rank).then(by_worth);
        let order = order.then((other.end, other.worker).cmp(&(self.end, self.worker)));
        order.is_gt()
    }
}

impl Standing {
    fn rank(self) -> (u8, f64) {
        match self {
            Self::KeepsUp(accuracy) => (2, accuracy),
            Self::InTime(rate) => (1, rate),
            Self::Late => (0, 0.0),
        }
    }
}
