//! The results of swaps, for the log, the status and the callers.

use std::collections::VecDeque;
use std::path::Path;

use serde::{Deserialize, Serialize};
use switchyard_core::canary::CanaryReport;
use switchyard_core::time::{Micros, Time};
use switchyard_policy::{CodeTier, LoadReport, PolicyVersion};

use super::canary::CanarySettings;

/// Swaps kept for the status.
const SWAPS_KEPT: usize = 64;

/// How an attempt to change the policy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwapResult {
    /// A new version serves.
    Switched,
    /// A version that served before serves again.
    RolledBack,
    /// The old one serves on.
    Refused,
    /// The file is gone and the fallback serves.
    Removed,
    /// A candidate gets a share of the requests.
    CanaryBegan,
    /// A canary's candidate serves.
    Promoted,
    /// A canary ended, and the policy of before serves on.
    Kept,
}

/// One attempt. Times are in microseconds; 0 if the step was not reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// How it ended.
    pub result: SwapResult,
    /// Time of the result, in microseconds since the server began.
    pub at_us: u64,
    /// Name of the operator who ordered it; empty if a file changed.
    #[serde(default)]
    pub by: String,
    /// The component's file.
    pub file: String,
    /// `name@version` of the policy, empty when it was not loaded.
    pub policy: String,
    /// The first digits of its content hash.
    pub hash: String,
    /// Time to compile it, or to find the compiled code.
    pub compile_us: u64,
    /// Whether the compiled code was in the cache.
    pub cached: bool,
    /// How it was compiled. Optimised code takes the place of baseline code when it is ready.
    #[serde(default)]
    pub code: CodeTier,
    /// Time to configure it.
    pub configure_us: u64,
    /// Time to try it on recorded windows.
    pub validate_us: u64,
    /// Recorded windows it was tried on.
    pub windows: usize,
    /// Time the driver took to switch, state handed over.
    pub switch_us: u64,
    /// Why it was refused.
    pub error: Option<String>,
    /// Why a canary ended so; empty for other swaps.
    #[serde(default)]
    pub reason: String,
}

/// A version kept for rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// `name@version`.
    pub policy: String,
    /// The whole content hash.
    pub hash: String,
    /// The file it came from.
    pub file: String,
}

/// The active version, the earlier ones and the latest attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoliciesStatus {
    /// The component that is followed.
    pub file: String,
    /// The version installed last, even if it was taken off for its faults. `None` after its file
    /// was removed.
    pub active: Option<Version>,
    /// Versions that a rollback can name, latest first.
    pub history: Vec<Version>,
    /// The last attempts, oldest first.
    pub swaps: VecDeque<Swap>,
    /// The canary that runs, or the last one.
    #[serde(default)]
    pub canary: Option<CanaryStatus>,
    /// The code of the active version.
    #[serde(default)]
    pub code: CodeTier,
}

/// A canary that runs, or the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CanaryStatus {
    /// The candidate.
    pub candidate: Version,
    /// The version that served when it began.
    pub serving: Version,
    /// Name of the operator who ordered it.
    pub by: String,
    /// When it began, in microseconds since the server began.
    pub began_us: u64,
    /// Its settings.
    pub settings: CanarySettings,
    /// It runs.
    pub runs: bool,
    /// Its findings.
    pub report: CanaryReport,
}

// === impl Version ===

impl Version {
    /// The policy's own name.
    pub fn name(&self) -> &str {
        self.policy.split('@').next().unwrap_or_default()
    }
}

// === impl SwapResult ===

impl SwapResult {
    /// All results.
    pub const ALL: [Self; 7] = [
        Self::Switched,
        Self::RolledBack,
        Self::Refused,
        Self::Removed,
        Self::CanaryBegan,
        Self::Promoted,
        Self::Kept,
    ];

    /// Name in metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Switched => "switched",
            Self::RolledBack => "rolled_back",
            Self::Refused => "refused",
            Self::Removed => "removed",
            Self::CanaryBegan => "canary_began",
            Self::Promoted => "promoted",
            Self::Kept => "kept",
        }
    }
}

// === impl Swap ===

impl Swap {
    pub(super) fn done(
        result: SwapResult,
        at: Time,
        version: &PolicyVersion,
        report: &LoadReport,
        switch: Micros,
    ) -> Self {
        Self {
            policy: version.label.clone(),
            hash: version.hash.to_string(),
            compile_us: report.compile_us,
            cached: report.cached,
            code: report.code,
            configure_us: report.configure_us,
            validate_us: report.validate_us,
            windows: report.windows,
            switch_us: switch.0,
            ..Self::bare(result, at, &version.file)
        }
    }

    pub(super) fn refused(at: Time, file: &Path, error: &str) -> Self {
        Self {
            error: Some(error.to_owned()),
            ..Self::bare(SwapResult::Refused, at, file)
        }
    }

    pub(super) fn removed(at: Time, file: &Path) -> Self {
        Self::bare(SwapResult::Removed, at, file)
    }

    fn bare(result: SwapResult, at: Time, file: &Path) -> Self {
        Self {
            result,
            at_us: at.0,
            by: String::new(),
            file: file.display().to_string(),
            policy: String::new(),
            hash: String::new(),
            compile_us: 0,
            cached: false,
            code: CodeTier::default(),
            configure_us: 0,
            validate_us: 0,
            windows: 0,
            switch_us: 0,
            error: None,
            reason: String::new(),
        }
    }
}

// === impl Version ===

impl From<&PolicyVersion> for Version {
    fn from(version: &PolicyVersion) -> Self {
        Self {
            policy: version.label.clone(),
            hash: version.hash.to_hex(),
            file: version.file.display().to_string(),
        }
    }
}

// === impl PoliciesStatus ===

impl PoliciesStatus {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.display().to_string(),
            ..Self::default()
        }
    }

    pub(super) fn switched(&mut self, swap: Swap, version: &PolicyVersion) {
        self.active = Some(version.into());
        self.code = swap.code;
        self.tried(swap);
    }

    pub(super) fn removed(&mut self, swap: Swap) {
        self.active = None;
        self.code = CodeTier::default();
        self.tried(swap);
    }

    pub(super) fn tried(&mut self, swap: Swap) {
        if self.swaps.len() == SWAPS_KEPT {
            self.swaps.pop_front();
        }
        self.swaps.push_back(swap);
    }
}
