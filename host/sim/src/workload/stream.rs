//! Workloads and their streams.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;

use super::arrivals::Arrivals;
use super::checks::positive;
use super::deadline::Deadline;
use super::error::WorkloadError;

/// All streams of a run. `poisson:200` parses to one stream over all apps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The streams; their arrivals are independent.
    pub streams: Vec<RequestStream>,
}

/// Requests with one arrival process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestStream {
    /// The apps of its requests.
    #[serde(default)]
    pub apps: Apps,
    /// The times of its requests.
    pub arrivals: Arrivals,
    /// The deadlines of its requests.
    #[serde(default)]
    pub deadline: Deadline,
    /// The lengths of its requests, with the weights at which they are drawn; without any, requests are
    /// as long as those of the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<LengthShare>,
    /// Whether windows show the process's own rate at their time instead of the measured one.
    #[serde(default)]
    pub known: bool,
}

/// A length of requests, such as the tokens of a text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthShare {
    /// The length, in the unit of the profile's lengths.
    pub length: u32,
    /// Its weight among the lengths.
    pub weight: f64,
}

/// The apps of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apps {
    /// One process; each arrival is for any app of the catalog with equal probability.
    #[default]
    All,
    /// A process of its own for every app of the catalog.
    Each,
    /// One process; each arrival is for an app drawn by these weights.
    Mix(BTreeMap<String, f64>),
}

// === impl RequestStream ===

impl RequestStream {
    /// Checks the weights of the lengths.
    ///
    /// # Errors
    /// The first length whose weight is out of range.
    pub(crate) fn check_lengths(&self) -> Result<(), WorkloadError> {
        for share in &self.lengths {
            positive("length", &share.length.to_string(), share.weight)?;
        }
        Ok(())
    }
}

// === impl Workload ===

impl Workload {
    /// The time at which the longest trace of the workload ends, exclusive; none without a trace.
    ///
    /// # Errors
    /// A trace file cannot be read.
    pub fn trace_length(&self) -> Result<Option<Micros>, WorkloadError> {
        let mut longest = None;
        for stream in &self.streams {
            longest = longest.max(stream.arrivals.trace_length()?);
        }
        Ok(longest)
    }
}
