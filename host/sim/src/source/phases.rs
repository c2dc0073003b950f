//! The phase that an arrival process is in.

/// Most phases that are reported separately; a longer trace divides its intervals among them.
pub const PHASES_MAX: usize = 32;

/// Length of a second, in the unit of arrival times. Times are microseconds as f64, which is exact
/// for 285 years and keeps fractions of gaps.
pub(super) const SECOND_US: f64 = 1e6;

/// A phase and its beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PhaseStart {
    pub(super) phase: usize,
    pub(super) since_us: f64,
}

/// Changes of the phase since the last arrival but one. The next arrival is drawn ahead, so the
/// current time may lie before changes that are already known.
#[derive(Clone, Debug)]
pub(super) struct PhaseHistory {
    /// At the last arrival but one.
    first: PhaseStart,
    changes: Vec<PhaseStart>,
}

// === impl PhaseHistory ===

impl PhaseHistory {
    /// In the first phase since the start.
    pub(super) fn new() -> Self {
        Self {
            first: PhaseStart {
                phase: 0,
                since_us: 0.0,
            },
            changes: Vec::new(),
        }
    }

    /// Forgets the changes before the last arrival.
    pub(super) fn advance(&mut self) {
        let last = self.changes.drain(..).next_back();
        self.first = last.unwrap_or(self.first);
    }

    /// A phase begins.
    pub(super) fn change(&mut self, phase: usize, since_us: f64) {
        self.changes.push(PhaseStart { phase, since_us });
    }

    /// The phase at a time between the last arrival and the next.
    pub(super) fn at(&self, at_us: f64) -> PhaseStart {
        let mut begun = self.changes.iter().rev();
        let begun = begun.find(|change| change.since_us <= at_us);
        *begun.unwrap_or(&self.first)
    }
}
