//! `responses.json`: response latencies of each model under each load. ModelSwitching reads it;
//! `switchyard prepare selection` writes it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Version of the layout.
pub const FORMAT: u32 = 1;

/// Name of the file in its folder.
pub const FILE: &str = "responses.json";

/// The measured response latencies of apps under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Responses {
    /// [`FORMAT`].
    pub format: u32,
    /// One entry per app and number of workers.
    pub measured: Vec<Measured>,
}

/// One app on a number of workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Name of the app.
    pub app: String,
    /// Kind of all the workers.
    pub kind: String,
    /// Number of workers.
    pub workers: u32,
    /// Deadline of a request from its arrival, in microseconds.
    pub slo_us: u64,
    /// The percentile of `response_us`, 0 to 1.
    pub percentile: f64,
    /// Loads in requests per second, ascending.
    pub loads_rps: Vec<f64>,
    /// One entry per variant.
    pub variants: Vec<VariantResponses>,
}

/// The response latencies of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantResponses {
    /// Name of the variant.
    pub variant: String,
    /// Largest batch of a worker, one per load.
    pub batch_max: Vec<u32>,
    /// From arrival to answer, in microseconds, one per load; none if it was not below the SLO.
    pub response_us: Vec<Option<u64>>,
}

/// A fault of `responses.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponsesError {
    /// The field.
    pub field: String,
    /// The fault.
    pub reason: String,
}

// === impl Responses ===

impl Responses {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The field at fault.
    pub fn parse(json: &str) -> Result<Self, ResponsesError> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let read: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            ResponsesError::new(field, error.into_inner().to_string())
        })?;
        let end = reader.end();
        end.map_err(|error| ResponsesError::new(".", error.to_string()))?;
        if read.format != FORMAT {
            let reason = format!(
                "is {}, must be {FORMAT}; run `switchyard prepare selection`",
                read.format
            );
            return Err(ResponsesError::new("format", reason));
        }
        for (m, measured) in read.measured.iter().enumerate() {
            measured.check(m)?;
        }
        Ok(read)
    }

    /// The measurements of an app on `workers` workers.
    pub fn of(&self, app: &str, workers: u32) -> Option<&Measured> {
        let mut measured = self.measured.iter();
        measured.find(|measured| measured.app == app && measured.workers == workers)
    }
}

// === impl Measured ===

impl Measured {
    fn check(&self, m: usize) -> Result<(), ResponsesError> {
        let fault = |field: &str, reason: &str| {
            Err(ResponsesError::new(
                format!("measured[{m}].{field}"),
                reason,
            ))
        };
        if self.loads_rps.is_empty() {
            return fault("loads_rps", "is empty");
        }
        if !self.loads_rps.is_sorted_by(|a, b| a < b) {
            return fault("loads_rps", "must ascend");
        }
        for (v, variant) in self.variants.iter().enumerate() {
            let lens = [variant.response_us.len(), variant.batch_max.len()];
            if lens != [self.loads_rps.len(); 2] {
                let field = format!("variants[{v}].response_us");
                return fault(&field, "and batch_max must have one entry per load");
            }
            if variant.batch_max.contains(&0) {
                return fault(&format!("variants[{v}].batch_max"), "must be 1 or more");
            }
        }
        Ok(())
    }
}

// === impl ResponsesError ===

impl ResponsesError {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for ResponsesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FILE}: `{}`: {}", self.field, self.reason)
    }
}

impl std::error::Error for ResponsesError {}
