//! Workloads and choices, as typed.

use switchyard_core::catalog::Late;
use switchyard_server::config::{LatencySource, PercentileName};
use switchyard_sim::Workload;

use crate::error::InputError;

/// A workload: a spec, or the name of a JSON file.
///
/// # Errors
/// The spec is wrong, or the file cannot be read; names the field.
pub fn workload(text: &str) -> Result<Workload, InputError> {
    if !text.ends_with(".json") || text.contains(':') {
        return text.parse().map_err(InputError::new);
    }
    let read = std::fs::read_to_string(text);
    let json = read.map_err(|error| InputError::new(format!("{text}: {error}")))?;
    workload_json(text, &json)
}

/// A workload as JSON; `name` stands in messages.
///
/// # Errors
/// Names the field that is wrong.
pub fn workload_json(name: &str, json: &str) -> Result<Workload, InputError> {
    let mut json = serde_json::Deserializer::from_str(json);
    let workload = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, inner) = (error.path().to_string(), error.inner());
        match path.as_str() {
            // The root has no name.
            "." => InputError::new(format!("{name}: {inner}")),
            path => InputError::new(format!("{name}: {path}: {inner}")),
        }
    })?;
    json.end()
        .map_err(|error| InputError::new(format!("{name}: {error}")))?;
    Ok(workload)
}

/// Latencies that predictions rest on.
///
/// # Errors
/// The word is unknown.
pub fn latencies(text: &str) -> Result<LatencySource, String> {
    match text {
        "observed" => Ok(LatencySource::Observed),
        "profiled" => Ok(LatencySource::Profiled),
        _ => Err("not one of observed, profiled".to_owned()),
    }
}

/// Treatment of requests that cannot be answered in time.
///
/// # Errors
/// The word is unknown.
pub fn late(text: &str) -> Result<Late, String> {
    match text {
        "serve" => Ok(Late::Serve),
        "drop" => Ok(Late::Drop),
        "last" => Ok(Late::Last),
        "shed" => Ok(Late::Shed),
        _ => Err("not one of serve, drop, last, shed".to_owned()),
    }
}

/// The percentile of the profile that policies plan with.
///
/// # Errors
/// The word is unknown.
pub fn percentile(text: &str) -> Result<PercentileName, String> {
    match text {
        "p50" => Ok(PercentileName::P50),
        "p95" => Ok(PercentileName::P95),
        "p99" => Ok(PercentileName::P99),
        _ => Err("must be p50, p95 or p99".to_owned()),
    }
}
