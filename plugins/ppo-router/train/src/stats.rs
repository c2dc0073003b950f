//! The statistics of an update.

use crate::env::SlotOutcome;
use crate::rollout::PHASES;

/// The statistics of one update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UpdateStats {
    /// Mean reward of a slot (eq. 2), without the baseline.
    pub reward: f64,
    /// Outcomes by the phase at the start of the slot.
    pub counts: [SlotOutcome; PHASES],
    /// Mean squared error of the values before the update over the variance of their targets.
    pub unexplained: f64,
    /// Share of samples that the last epoch clipped.
    pub clipped: f64,
}
