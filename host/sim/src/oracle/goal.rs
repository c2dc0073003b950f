//! Goals of a clairvoyant schedule.

/// The goal of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The least mean of turnaround over the latency alone on the best worker (ANTT).
    Turnaround,
    /// The fewest requests past their deadlines, then the least ANTT.
    Deadlines,
    /// The largest sum of the accuracies of answers in time ("goodput ratio"), over all batches,
    /// variants and exits. The schedule is proved optimal, so runs must be small.
    Goodput,
}

// === impl Goal ===

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::Turnaround, Self::Deadlines, Self::Goodput];

    /// Its name as a policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turnaround => "oracle-antt",
            Self::Deadlines => "oracle-slo",
            Self::Goodput => "oracle-goodput",
        }
    }
}
