//! Traces: recorded arrivals.

use std::path::Path;

use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;

use super::error::WorkloadError;

/// A recorded arrival process, in one of three layouts. Other fields (`source`, say) are
/// ignored.
///
/// ```json
/// {"interval_s": 10, "qps": [1850, 1617]}
/// {"arrivals_us": [12, 5000, 5000, 7100]}
/// {"requests": [{"at_us": 12, "app": "heart", "deadline_us": 20000}]}
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
    /// Recorded requests, ascending. Their apps replace the apps of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Vec<Recorded>>,
}

/// One request of recorded traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its arrival, in microseconds.
    pub at_us: u64,
    /// Its app.
    pub app: String,
    /// Time from its arrival to its deadline; by default the stream's law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_us: Option<Micros>,
    /// Its length, such as the tokens of a text; by default the stream's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
}

// === impl Trace ===

impl Trace {
    /// Reads and checks a trace file.
    ///
    /// # Errors
    /// It cannot be read, or a field is wrong; names file and field.
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
            .map_err(|error| failed(error.path().to_string(), plain(&error.inner().to_string())))?;
        json.end()
            .map_err(|error| failed(".".to_owned(), error.to_string()))?;
        trace.validate(&file)?;
        Ok(trace)
    }

    /// Checks that it has one layout, with at least one arrival, in order.
    ///
    /// # Errors
    /// Names the field; `file` is the name of the trace.
    pub fn validate(&self, file: &str) -> Result<(), WorkloadError> {
        let wrong = |field: &str, reason: &str| {
            Err(WorkloadError::Trace {
                file: file.to_owned(),
                field: field.to_owned(),
                reason: reason.to_owned(),
            })
        };
        match (&self.qps, &self.arrivals_us, &self.requests) {
            (None, None, None) => wrong(".", "has none of `qps`, `arrivals_us` and `requests`"),
            (Some(qps), None, None) => match rates(self.interval_s, qps) {
                Ok(()) => Ok(()),
                Err((field, reason)) => wrong(&field, &reason),
            },
            (None, Some(times), None) => match order(times.iter().copied()) {
                Ok(()) => Ok(()),
                Err((None, reason)) => wrong("arrivals_us", &reason),
                Err((Some(at), reason)) => wrong(&format!("arrivals_us[{at}]"), &reason),
            },
            (None, None, Some(requests)) => match order(requests.iter().map(|r| r.at_us)) {
                Ok(()) => Ok(()),
                Err((None, reason)) => wrong("requests", &reason),
                Err((Some(at), reason)) => wrong(&format!("requests[{at}].at_us"), &reason),
            },
            _ => wrong(".", "has several of `qps`, `arrivals_us` and `requests`"),
        }
    }

    /// The time at which it ends, exclusive: after its last interval, or after its last arrival.
    pub fn length(&self) -> Micros {
        if let Some(qps) = &self.qps {
            let seconds = self.interval_s.unwrap_or_default() * qps.len() as f64;
            return Micros((seconds * 1e6).round() as u64);
        }
        let recorded = self.requests.iter().flatten().map(|request| request.at_us);
        let times = self.arrivals_us.iter().flatten().copied().chain(recorded);
        Micros(times.max().map_or(0, |last| last.saturating_add(1)))
    }

    /// Arrivals at `from` or later, and all arrivals; the means if the trace has rates.
    pub(super) fn arrivals_from(&self, from: Micros) -> (f64, f64) {
        if let Some(qps) = &self.qps {
            let length_s = self.interval_s.unwrap_or_default();
            let from_s = from.as_secs_f64();
            let late = |at: usize| (at as f64 + 1.0 - from_s / length_s).clamp(0.0, 1.0);
            let rates = qps.iter().enumerate();
            let left = rates.map(|(at, rate)| rate * late(at)).sum::<f64>();
            return (left * length_s, qps.iter().sum::<f64>() * length_s);
        }
        let recorded = self.requests.iter().flatten().map(|request| request.at_us);
        let times = self.arrivals_us.iter().flatten().copied().chain(recorded);
        let late = times.clone().filter(|at_us| *at_us >= from.0);
        (late.count() as f64, times.count() as f64)
    }
}

/// Words of serde's messages that name Rust types.
fn plain(message: &str) -> String {
    message
        .replace("expected f64", "expected a number")
        .replace("expected u64", "expected a whole number")
}

fn rates(interval_s: Option<f64>, qps: &[f64]) -> Result<(), (String, String)> {
    let wrong = |field: &str, reason: &str| Err((field.to_owned(), reason.to_owned()));
    if qps.is_empty() {
        return wrong("qps", "is empty");
    }
    let usable = |rate: &f64| rate.is_finite() && *rate >= 0.0;
    if let Some(at) = qps.iter().position(|rate| !usable(rate)) {
        let reason = format!("is {}, must be at least 0", qps[at]);
        return wrong(&format!("qps[{at}]"), &reason);
    }
    if qps.iter().all(|&rate| rate == 0.0) {
        return wrong("qps", "needs a rate above 0");
    }
    match interval_s {
        Some(length) if length.is_finite() && length > 0.0 => Ok(()),
        Some(_) => wrong("interval_s", "must be positive"),
        None => wrong("interval_s", "is missing"),
    }
}

fn order(times_us: impl Iterator<Item = u64>) -> Result<(), (Option<usize>, String)> {
    let mut before = None;
    for (at, time_us) in times_us.enumerate() {
        if let Some(before) = before.filter(|&before| time_us < before) {
            let reason = format!("is {time_us}, must be at least {before}, that of the row before");
            return Err((Some(at), reason));
        }
        before = Some(time_us);
    }
    before.map(|_| ()).ok_or((None, "is empty".to_owned()))
}
