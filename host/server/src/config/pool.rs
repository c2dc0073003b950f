//! `[[pool]]`: apps and workers that one policy schedules.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use switchyard_core::SchedulerConfig;
use switchyard_core::guard::FaultLimit;
use switchyard_core::time::Micros;
use switchyard_policy::Limits;

use super::PrepareConfig;

/// One pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolConfig {
    /// Name in logs and metrics.
    ///
    /// String; required; example `"main"`.
    pub name: String,
    /// Apps of the pool.
    ///
    /// List of strings; required; example `["heart"]`.
    pub apps: Vec<String>,
    /// Workers of the pool.
    ///
    /// List of strings; required; example `["cpu-a"]`.
    pub workers: Vec<String>,
    /// Policy of the pool: a name, for `NAME.wasm` in `policies.dir`, or a path of a `.wasm`, whose
    /// folder is watched too. `"edf-fallback"`: the host's own, without a file.
    ///
    /// String; required; example `"sneakpeek"`.
    pub policy: String,
    /// Settings of the policy, listed in its README. Each overrides its field of `NAME.toml` next
    /// to the policy.
    ///
    /// Table; default none; example `{ tau = 4 }`.
    #[serde(default)]
    pub settings: Option<toml::Table>,
    /// Longest time of one window call. A longer call is cut and is a fault; the previous version
    /// or the fallback decides the window.
    ///
    /// Integer, ms, 1 to 60000; default `5`; example `10`.
    #[serde(default = "default_window_budget_ms")]
    pub window_budget_ms: u64,
    /// Largest memory of the policy: all linear memories and tables of its component together.
    ///
    /// Integer, MiB, 1 to 4096; default `64`; example `16`.
    #[serde(default = "default_policy_memory_mb")]
    pub policy_memory_mb: usize,
    /// Requests that may wait for a decision. A further one gets 429.
    ///
    /// Integer, 1 to 1000000; default `4096`; example `1024`.
    #[serde(default = "default_pending_max")]
    pub pending_max: usize,
    /// Faults past which the policy is taken off.
    ///
    /// Table; default see below; example `{ faults = 3, windows = 50 }`.
    #[serde(default)]
    pub fault_limit: FaultLimitConfig,
    /// Longest time past its deadline that a request stays pending while a worker is idle. Then the
    /// fallback serves it, and it counts as a fault.
    ///
    /// Integer, ms, 1 to 3600000; default `1000`; example `500`.
    #[serde(default = "default_patience_ms")]
    pub patience_ms: u64,
    /// Latencies that predictions rest on. `"observed"`: the profile times the slowdown observed in
    /// the last seconds. `"profiled"`: the profile.
    ///
    /// `"observed"`, `"profiled"`; default `"observed"`; example `"profiled"`.
    #[serde(default)]
    pub latencies: LatencySource,
    /// Windows kept for explanations and for trials of new policies.
    ///
    /// Integer, 1 to 4096; default `64`; example `256`.
    #[serde(default = "default_windows_kept")]
    pub windows_kept: usize,
    /// Seed of the policy's random numbers and of draws over routes.
    ///
    /// Integer; default `0`; example `7`.
    #[serde(default)]
    pub seed: u64,
    /// Recording of every window and plan; see below.
    ///
    /// Table; default none: no recording; example `{ file = "main.rec", max_mb = 64 }`.
    #[serde(default)]
    pub record: Option<RecordConfig>,
    /// Command that makes artifacts while the policy serves; see below.
    ///
    /// Table; default none; example `{ command = ["make-tables", "{load_rps}"] }`.
    #[serde(default)]
    pub prepare: Option<PrepareConfig>,
    /// Candidate that gets the same windows; see below.
    ///
    /// Table; default none; example `{ policy = "next" }`.
    #[serde(default)]
    pub shadow: Option<ShadowConfig>,
}

/// The latencies that predictions rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencySource {
    /// The profile's, times the observed slowdown.
    #[default]
    Observed,
    /// The profile's.
    Profiled,
}

/// A candidate that plans the same windows as the policy of the pool. Its plans are not applied.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShadowConfig {
    /// Candidate: a name or a path, as in `[[pool]]`.
    ///
    /// String; required; example `"candidate"`.
    pub policy: String,
    /// Settings of the candidate. Each overrides its field of `NAME.toml` next to it.
    ///
    /// Table; default none; example `{ tau = 4 }`.
    #[serde(default)]
    pub settings: toml::Table,
}

/// A recording of windows and plans.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordConfig {
    /// File of the recording. Each start of the server appends a run to it.
    ///
    /// Path; required; example `"/var/lib/switchyard/main.rec"`.
    pub file: PathBuf,
    /// Size at which recording stops, with a log line and `switchyard_recording_active` at 0. To
    /// record again, move the file away and restart.
    ///
    /// Integer, MiB, 1 to 1048576; default `256`; example `64`.
    #[serde(default = "default_record_max_mb")]
    pub max_mb: u64,
}

/// When a policy that faults is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultLimitConfig {
    /// Faults at which the policy is taken off ...
    ///
    /// Integer, 1 to 1000000; default `5`; example `3`.
    pub faults: usize,
    /// ... within this number of windows.
    ///
    /// Integer, 1 to 1000000; default `100`; example `50`.
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

    /// Time and memory of the pool's policies.
    pub fn limits(&self) -> Limits {
        Limits {
            window_budget: self.window_budget(),
            memory_bytes: self.policy_memory_mb << 20,
            ..Limits::default()
        }
    }

    /// Bounds and seed of the pool's scheduler.
    pub fn scheduler(&self) -> SchedulerConfig {
        SchedulerConfig {
            seed: self.seed,
            pending_max: self.pending_max,
            fault_limit: self.fault_limit.into(),
            patience: Micros::from_millis(self.patience_ms),
            history: self.windows_kept,
            follows_latencies: self.latencies == LatencySource::Observed,
            ..SchedulerConfig::default()
        }
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
