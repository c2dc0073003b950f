//! What a shadow has found, for the status.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::judge::{Tally, Worth};

/// Differences kept.
const DIFFERENCES_KEPT: usize = 8;

/// The shadow of a pool. Counts are of the version that is asked now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShadowStatus {
    /// The component that is followed.
    pub file: String,
    /// `name@version`; none while there is nobody to ask.
    pub policy: Option<String>,
    /// The first digits of its content hash.
    pub hash: Option<String>,
    /// Why the version that came last was refused.
    pub error: Option<String>,
    /// Windows put before it.
    pub windows: u64,
    /// It would have done the same.
    pub identical: u64,
    /// It would not.
    pub different: u64,
    /// Of the different ones: in nothing but when to be asked again.
    pub wake_only: u64,
    /// Of the different ones: it gave no plan, or none that could be applied.
    pub failed: u64,
    /// Windows that passed while it was busy with others.
    pub missed: u64,
    /// Of the windows on which both differ, what the active policy's plans are expected to bring.
    pub active: Expected,
    /// The same of the shadow's plans.
    pub shadow: Expected,
    /// The last windows on which they differ in more than when to be asked again, oldest first, as
    /// `switchyard replay --json` shows them.
    pub differences: VecDeque<Value>,
}

/// What plans are expected to bring, if all goes as the profile says. Requests that a plan leaves
/// waiting are in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Sum of utilities (SneakPeek eq. 2).
    pub utility: f64,
    /// Requests that have one.
    pub requests: u64,
}

// === impl ShadowStatus ===

impl ShadowStatus {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.display().to_string(),
            ..Self::default()
        }
    }

    /// Another version is asked from now on.
    pub(super) fn loaded(&mut self, policy: String, hash: String) {
        *self = Self {
            file: std::mem::take(&mut self.file),
            policy: Some(policy),
            hash: Some(hash),
            ..Self::default()
        };
    }

    pub(super) fn removed(&mut self) {
        self.policy = None;
        self.hash = None;
        self.error = None;
    }

    /// What was found up to now, and what the last window added.
    pub(super) fn found(&mut self, tally: &Tally, missed: u64, difference: Option<Value>) {
        self.windows = tally.windows;
        self.identical = tally.identical;
        self.different = tally.different;
        self.wake_only = tally.wake_only;
        self.failed = tally.failed;
        self.missed = missed;
        self.active = tally.done.into();
        self.shadow = tally.proposed.into();
        if let Some(difference) = difference {
            self.differences.push_back(difference);
            if self.differences.len() > DIFFERENCES_KEPT {
                self.differences.pop_front();
            }
        }
    }
}

impl From<Worth> for Expected {
    fn from(worth: Worth) -> Self {
        Self {
            utility: worth.utility,
            requests: worth.requests,
        }
    }
}
