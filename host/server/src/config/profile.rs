//! `[profile]`: measured latencies.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use switchyard_profile::Percentile;

/// Which profile is used.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileConfig {
    /// Profile, written by `switchyard profile --out FILE`. One of another machine or other models
    /// is an error.
    ///
    /// Path; default the one of this machine in `dir`; example `"profiles/here.json"`.
    pub file: Option<PathBuf>,
    /// Folder of measured profiles, one file per machine. If none fits, the server measures at
    /// start and keeps the profile here.
    ///
    /// Path; default `"profiles"`; example `"/var/lib/switchyard"`.
    pub dir: PathBuf,
    /// Workers compute nothing and take the time that `file` gives, which may be of any machine: to try a
    /// policy with the latencies of hardware that is not here. Their answers are made up. Apps that the file
    /// brings need no zoo. Only for apps that classify and for workers of this process.
    ///
    /// Boolean; default `false`; example `true`.
    pub stand_in: bool,
    /// Percentile of the latencies that policies plan with.
    ///
    /// `"p50"`, `"p95"`, `"p99"`; default `"p95"`; example `"p99"`.
    pub percentile: PercentileName,
    /// Time for measuring at start, if no profile fits.
    ///
    /// Integer, s, 1 to 3600; default `10`; example `30`.
    pub measure_s: u64,
    /// Ratio of observed to profiled latency, either way, past which a batch counts as drifted
    /// (`switchyard_profile_drift_ratio`, `switchyard_profile_drift_episodes_total`, one log line a
    /// minute). The observation is the median of the last 16 batches of the same worker, variant,
    /// stages, exit and size. Differences below 50 us are ignored.
    ///
    /// Number, 1.05 to 100; default `1.5`; example `2.0`.
    pub drift_ratio: f64,
}

/// The percentiles that profiles hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PercentileName {
    /// The median.
    P50,
    /// The percentile of the papers.
    #[default]
    P95,
    /// The tail.
    P99,
}

// === impl PercentileName ===

impl From<PercentileName> for Percentile {
    fn from(name: PercentileName) -> Self {
        match name {
            PercentileName::P50 => Self::P50,
            PercentileName::P95 => Self::P95,
            PercentileName::P99 => Self::P99,
        }
    }
}

// === impl ProfileConfig ===

impl Default for ProfileConfig {
    fn default() -> Self {
        Self {
            file: None,
            stand_in: false,
            dir: PathBuf::from("profiles"),
            percentile: PercentileName::default(),
            measure_s: 10,
            drift_ratio: 1.5,
        }
    }
}
