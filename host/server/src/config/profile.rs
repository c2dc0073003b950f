//! `[profile]`: measured latencies.

use std::path::PathBuf;

use serde::Deserialize;
use switchyard_executor::profile::Percentile;

/// Which profile is used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileConfig {
    /// The file; absent: the one of this machine in `dir`, measured if there is none.
    pub file: Option<PathBuf>,
    /// Folder of measured profiles, one file per machine.
    pub dir: PathBuf,
    /// Which percentile of the latencies policies plan with.
    pub percentile: PercentileName,
    /// Time that measuring may take where no profile fits.
    pub measure_s: u64,
    /// How far, as a ratio either way, observed latencies may be from the profile's median before
    /// somebody is told.
    pub drift_ratio: f64,
}

/// The percentiles that profiles hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PercentileName {
    /// The median.
    P50,
    /// What the papers plan with.
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
            dir: PathBuf::from("profiles"),
            percentile: PercentileName::default(),
            measure_s: 10,
            drift_ratio: 1.5,
        }
    }
}
