//! Laws of deadlines.

use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;

use super::checks::positive;
use super::error::WorkloadError;

/// The law of the time from arrival to deadline. As an option of a stream: `@deadline=150ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Deadline {
    /// The app's SLO: `slo`.
    #[default]
    Slo,
    /// A multiple of the app's SLO: `slo*1.5`.
    Scaled(f64),
    /// The same for all: `150ms`.
    Fixed(Micros),
    /// Normal, `normal:150ms,20ms`; at least a tenth of the mean.
    Normal {
        /// Mean in microseconds.
        mean_us: Micros,
        /// Standard deviation in microseconds.
        sd_us: Micros,
    },
}

// === impl Deadline ===

impl Deadline {
    /// Checks every number.
    ///
    /// # Errors
    /// The field that is out of range.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        match *self {
            Self::Slo => Ok(()),
            Self::Scaled(factor) => positive("deadline", "slo*", factor),
            Self::Fixed(length) => positive("deadline", "fixed", length.0 as f64),
            Self::Normal { mean_us, .. } => positive("deadline", "mean_us", mean_us.0 as f64),
        }
    }
}
