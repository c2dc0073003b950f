//! `[[pool]]`: apps and workers that one policy schedules.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use switchyard_core::guard::FaultLimit;

/// One pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolConfig {
    /// Name in logs and metrics.
    pub name: String,
    /// Apps it serves; an app belongs to one pool.
    pub apps: Vec<String>,
    /// Workers it has; a worker belongs to one pool.
    pub workers: Vec<String>,
    /// The policy: a name, for `NAME.wasm` in the watched folder, or a path that ends in
    /// `.wasm`, whose folder is watched as well.
    pub policy: String,
    /// The policy's settings, field by field before those in `NAME.toml` beside it.
    #[serde(default)]
    pub settings: Option<toml::Table>,
    /// Longest time one window call may take.
    #[serde(default = "default_window_budget_ms")]
    pub window_budget_ms: u64,
    /// Memory the policy may have, in MiB.
    #[serde(default = "default_policy_memory_mb")]
    pub policy_memory_mb: usize,
    /// Requests that may be pending; more get 429.
    #[serde(default = "default_pending_max")]
    pub pending_max: usize,
    /// When a policy that faults is taken off.
    #[serde(default)]
    pub fault_limit: FaultLimitConfig,
    /// How long past its deadline a request may stay pending beside an idle worker before the
    /// fallback serves it and the policy is charged with a fault.
    #[serde(default = "default_patience_ms")]
    pub patience_ms: u64,
    /// Windows kept for explanations and for trying new policies on.
    #[serde(default = "default_windows_kept")]
    pub windows_kept: usize,
    /// Seed of the policy's random numbers and of draws over routes.
    #[serde(default)]
    pub seed: u64,
    /// Where windows and plans are recorded; absent: nowhere.
    #[serde(default)]
    pub record: Option<RecordConfig>,
    /// A candidate that gets the same windows and is not obeyed; absent: none.
    #[serde(default)]
    pub shadow: Option<ShadowConfig>,
}

/// A policy that is asked what it would do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShadowConfig {
    /// As the pool's own.
    pub policy: String,
    /// Its settings, field by field before those in `NAME.toml` beside it.
    #[serde(default)]
    pub settings: toml::Table,
}

/// A recording of windows and plans.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordConfig {
    /// The file, which is appended to.
    pub file: PathBuf,
    /// Its size in MiB at which recording stops.
    #[serde(default = "default_record_max_mb")]
    pub max_mb: u64,
}

/// When a policy that faults is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultLimitConfig {
    /// This many faults ...
    pub faults: usize,
    /// ... within this many windows.
    pub windows: u64,
}

// === impl PoolConfig ===

impl PoolConfig {
    /// Longest time one window call may take.
    pub fn window_budget(&self) -> Duration {
        Duration::from_millis(self.window_budget_ms)
    }

    /// The policy's component, given the watched folder.
    pub fn policy_file(&self, policies: &Path) -> PathBuf {
        policy_file(&self.policy, policies)
    }
}

// === impl ShadowConfig ===

impl ShadowConfig {
    /// The policy's component, given the watched folder.
    pub fn policy_file(&self, policies: &Path) -> PathBuf {
        policy_file(&self.policy, policies)
    }
}

/// Whether a policy is given as a file, not as a name.
pub(super) fn names_file(policy: &str) -> bool {
    policy.ends_with(".wasm")
}

fn policy_file(policy: &str, policies: &Path) -> PathBuf {
    match names_file(policy) {
        true => PathBuf::from(policy),
        false => policies.join(format!("{policy}.wasm")),
    }
}

// === impl FaultLimitConfig ===

impl Default for FaultLimitConfig {
    fn default() -> Self {
        let FaultLimit { faults, windows } = FaultLimit::default();
        Self { faults, windows }
    }
}

impl From<FaultLimitConfig> for FaultLimit {
    fn from(config: FaultLimitConfig) -> Self {
        Self {
            faults: config.faults,
            windows: config.windows,
        }
    }
}

fn default_window_budget_ms() -> u64 {
    5
}

fn default_policy_memory_mb() -> usize {
    64
}

fn default_pending_max() -> usize {
    4_096
}

fn default_patience_ms() -> u64 {
    1_000
}

fn default_windows_kept() -> usize {
    64
}

fn default_record_max_mb() -> u64 {
    256
}
