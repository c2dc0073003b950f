//! Traces: what arrived somewhere, replayed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::WorkloadError;

/// A recorded arrival process, in one of two layouts. Other fields (`source`, say) are ignored.
///
/// ```json
/// {"interval_s": 10, "qps": [1850, 1617]}
/// {"arrivals_us": [12, 5000, 5000, 7100]}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Length of an interval in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// Mean requests per second in each interval; arrivals inside are Poisson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<Vec<f64>>,
    /// Arrival times in microseconds, ascending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals_us: Option<Vec<u64>>,
}

// === impl Trace ===

impl Trace {
    /// Reads and checks a trace file.
    ///
    /// # Errors
    /// It cannot be read, or a field of it makes no sense; names file and field.
    pub fn load(path: &Path) -> Result<Self, WorkloadError> {
        let file = path.display().to_string();
        let failed = |field: String, reason: String| WorkloadError::Trace {
            file: file.clone(),
            field,
            reason,
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| failed(".".to_owned(), error.to_string()))?;
        let mut json = serde_json::Deserializer::from_str(&text);
        let trace: Self = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| failed(error.path().to_string(), error.inner().to_string()))?;
        trace.validate(&file)?;
        Ok(trace)
    }

    /// Checks that it is one layout, not empty and in order.
    ///
    /// # Errors
    /// Names the field; `file` is where the trace came from.
    pub fn validate(&self, file: &str) -> Result<(), WorkloadError> {
        let wrong = |field: &str, reason: &str| {
            Err(WorkloadError::Trace {
                file: file.to_owned(),
                field: field.to_owned(),
                reason: reason.to_owned(),
            })
        };
        match (&self.qps, &self.arrivals_us) {
            (None, None) => wrong(".", "holds neither `qps` nor `arrivals_us`"),
            (Some(_), Some(_)) => wrong(".", "holds both `qps` and `arrivals_us`"),
            (None, Some(times)) if times.is_empty() => wrong("arrivals_us", "is empty"),
            (None, Some(times)) => match times.windows(2).position(|pair| pair[1] < pair[0]) {
                Some(at) => wrong(&format!("arrivals_us[{}]", at + 1), "goes back in time"),
                None => Ok(()),
            },
            (Some(qps), None) if qps.is_empty() => wrong("qps", "is empty"),
            (Some(qps), None) => {
                let usable = |rate: &f64| rate.is_finite() && *rate >= 0.0;
                if let Some(at) = qps.iter().position(|rate| !usable(rate)) {
                    return wrong(&format!("qps[{at}]"), "is not a rate");
                }
                if qps.iter().all(|&rate| rate == 0.0) {
                    return wrong("qps", "is zero throughout");
                }
                match self.interval_s {
                    Some(length) if length.is_finite() && length > 0.0 => Ok(()),
                    Some(_) => wrong("interval_s", "must be positive"),
                    None => wrong("interval_s", "is missing"),
                }
            }
        }
    }
}
