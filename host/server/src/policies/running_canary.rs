//! A canary that runs.

use std::time::{Duration, Instant};

use switchyard_core::canary::CanaryWatch;
use switchyard_policy::PolicyVersion;

use super::canary::CanarySettings;

/// How often a canary is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A canary that runs.
pub(super) struct RunningCanary {
    pub(super) candidate: PolicyVersion,
    pub(super) watch: CanaryWatch,
    pub(super) settings: CanarySettings,
    /// The operator who ordered it.
    pub(super) by: String,
    /// Faults that the log has told.
    pub(super) faults: u64,
    /// When it is looked at again.
    pub(super) look_at: Instant,
}
