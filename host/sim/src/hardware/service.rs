//! Service times of batches, given the latencies of the profile.

use serde::{Deserialize, Serialize};
use switchyard_core::event::Launch;
use switchyard_core::ids::KindId;
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;
use thiserror::Error;

use crate::random::Stream;

/// The law of service times. Its numbers are shares of the profile's latency of the batch, with
/// which policies plan: with a profile of 95th percentiles the mean is below 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServiceTimes {
    /// Exactly the profile's latency.
    #[default]
    Profiled,
    /// Normal; cut off at a tenth of its mean.
    Normal {
        /// Mean, as a share of the profile's latency.
        mean: f64,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Log-normal: a long tail, as on busy machines.
    LogNormal {
        /// Mean, as a share of the profile's latency.
        mean: f64,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Exponential: for comparison with queueing theory.
    Exponential {
        /// Mean, as a share of the profile's latency.
        mean: f64,
    },
    /// Between measured percentiles, linear in the percentile, and never below the lowest or above
    /// the highest of them.
    Percentiles(Vec<Quantile>),
}

/// A whole profile at one percentile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// The percentile as a share, 0 to 1.
    pub quantile: f64,
    /// Its latencies.
    pub profile: Profile,
}

/// A law of service times with a wrong number.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("service times: {field}: {reason}")]
pub struct ServiceError {
    /// The field at fault.
    pub field: String,
    /// The reason.
    pub reason: String,
}

/// A normal draw is never below this share of its mean.
const NORMAL_MIN: f64 = 0.1;

// === impl ServiceTimes ===

impl ServiceTimes {
    /// Checks every number.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ServiceError> {
        let check = |field: &str, ok: bool, reason: &str| match ok {
            true => Ok(()),
            false => Err(ServiceError {
                field: field.to_owned(),
                reason: reason.to_owned(),
            }),
        };
        match self {
            Self::Profiled => Ok(()),
            Self::Normal { mean, cv } | Self::LogNormal { mean, cv } => {
                check("mean", mean.is_finite() && *mean > 0.0, "must be positive")?;
                check("cv", cv.is_finite() && *cv >= 0.0, "must not be negative")
            }
            Self::Exponential { mean } => {
                check("mean", mean.is_finite() && *mean > 0.0, "must be positive")
            }
            Self::Percentiles(quantiles) => {
                check("percentiles", !quantiles.is_empty(), "is empty")?;
                let shares = quantiles.iter().all(|q| (0.0..=1.0).contains(&q.quantile));
                check("percentiles", shares, "must be shares from 0 to 1")?;
                let grows = quantiles.windows(2).all(|q| q[0].quantile < q[1].quantile);
                check("percentiles", grows, "must ascend")
            }
        }
    }

    /// The service time of one batch, at least a microsecond.
    pub(super) fn draw(
        &self,
        profiled: Micros,
        kind: KindId,
        launch: &Launch,
        random: &mut Stream,
    ) -> Micros {
        let share = match self {
            Self::Profiled => return profiled,
            Self::Normal { mean, cv } => mean * (1.0 + cv * random.normal()).max(NORMAL_MIN),
            Self::LogNormal { mean, cv } => {
                let variance = libm::log(1.0 + cv * cv);
                mean * libm::exp(libm::sqrt(variance) * random.normal() - 0.5 * variance)
            }
            Self::Exponential { mean } => mean * random.exponential(),
            Self::Percentiles(quantiles) => {
                let of = |profile: &Profile| {
                    let (from, to, cost) = (launch.from_stage, launch.to_stage, launch.cost);
                    let latency =
                        profile.latency_of(kind, launch.variant, from, to, launch.exit, cost);
                    latency.unwrap_or(profiled).0 as f64
                };
                return micros(between(quantiles, random.uniform(), of));
            }
        };
        micros(profiled.0 as f64 * share)
    }
}

/// Rounded, and at least a microsecond.
fn micros(us: f64) -> Micros {
    Micros(((us + 0.5) as u64).max(1))
}

fn between(quantiles: &[Quantile], at: f64, of: impl Fn(&Profile) -> f64) -> f64 {
    let above = quantiles.partition_point(|q| q.quantile < at);
    match (
        above.checked_sub(1).map(|i| &quantiles[i]),
        quantiles.get(above),
    ) {
        (Some(low), Some(high)) => {
            let into = (at - low.quantile) / (high.quantile - low.quantile);
            let (from, to) = (of(&low.profile), of(&high.profile));
            from + (to - from) * into
        }
        (Some(only), None) | (None, Some(only)) => of(&only.profile),
        // Validation requires at least one.
        (None, None) => 0.0,
    }
}
