//! The findings of a shadow, for the status.

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
    /// The component that is watched.
    pub file: String,
    /// `name@version`; `None` while no version is loaded.
    pub policy: Option<String>,
    /// The first digits of its content hash.
    pub hash: Option<String>,
    /// Why the version that came last was refused.
    pub error: Option<String>,
    /// Windows that it was asked about.
    pub windows: u64,
    /// Its plan was the active one.
    pub identical: u64,
    /// Its plan was another one.
    pub different: u64,
    /// Of the different ones: only the wake-up time differs.
    pub wake_only: u64,
    /// Of the different ones: it gave no plan, or a refused one.
    pub failed: u64,
    /// Windows that passed while it was busy with others.
    pub missed: u64,
    /// The expected worth of the active policy's plans, over the windows on which both differ.
    pub active: Expected,
    /// The same for the shadow's plans.
    pub shadow: Expected,
    /// The last windows on which they differ in more than the wake-up time, oldest first, as
    /// `switchyard replay --json` shows them.
    pub differences: VecDeque<Value>,
}

/// The expected worth of plans if the profile is right. Requests that a plan leaves waiting do not
/// count.
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

    /// The findings up to now, and the difference of the last window.
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
