//! The contents of a report, as programs read them.

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Time;

use super::catalog_data::CatalogData;
use super::comparison::{self, Comparison};
use crate::overhead::WindowTimes;
use crate::runner::PolicyOutcome;
use crate::timeline::{BatchBar, RequestEnds, Timeline};

/// Version of the JSON form; grows when a field changes its meaning or is removed.
pub const FORMAT: u32 = 1;

/// Everything that a report shows. Units are in the names of fields; ratios and accuracies are 0 to
/// 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportData {
    /// [`FORMAT`] of the version that wrote it.
    pub format: u32,
    /// The request that led to the report, and its inputs.
    pub meta: Meta,
    /// Apps, variants and workers, at the point that has the most of them.
    pub catalog: CatalogData,
    /// Results by point, then by policy.
    pub runs: Vec<PolicyOutcome>,
    /// Batches and ends of requests, of the runs that were observed.
    pub timelines: Vec<TimelineData>,
    /// Time of the simulating machine that policies took, by point and policy. The one part that
    /// differs between two runs of a command.
    #[serde(default)]
    pub scheduling: Vec<SchedulingData>,
    /// Differences from a baseline, if one was named.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
}

/// Host time of one policy's windows at one point, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulingData {
    /// The point, as its outcomes name it.
    #[serde(default)]
    pub point: String,
    /// The policy, as its outcomes name it.
    pub policy: String,
    /// Time per window.
    #[serde(flatten)]
    pub times: WindowTimes,
}

/// The inputs of a report. The page leaves out every field that is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Heading of the page.
    pub title: String,
    /// The command line that makes the same report.
    pub command: String,
    /// Version of the program that simulated.
    pub version: String,
    /// Date of the report, in the caller's format.
    pub date: String,
    /// The workload, as a spec.
    pub workload: String,
    /// The file of the latencies.
    pub profile: String,
    /// Content hash of that file, hexadecimal.
    pub profile_hash: String,
    /// The policies by name, with their components.
    pub policies: Vec<PolicyMeta>,
    /// Virtual seconds in which requests arrive.
    pub seconds: f64,
    /// Arrivals of traces that the runs do not reach, a sentence per point.
    pub left_out: Vec<String>,
    /// One run each.
    pub seeds: Vec<u64>,
    /// The parameter of the sweep.
    pub axis: Option<SweepAxis>,
    /// The deadline of all requests, if they have the same one; marked in plots of latency.
    pub deadline_ms: Option<f64>,
}

/// The component behind a policy's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyMeta {
    /// The policy, as its outcomes name it.
    pub policy: String,
    /// `name@version`, from the policy's own description.
    pub label: String,
    /// Content hash of the component, hexadecimal; empty for a native policy.
    pub hash: String,
    /// Its settings, as JSON.
    pub settings: String,
}

/// The parameter of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// As points are named: `load` in `load=1.5`.
    pub name: String,
    /// As axes are labelled, with its unit: `load, times the workload's rates`.
    pub label: String,
}

/// Batches and ends of requests under one policy, in an interval of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineData {
    /// The policy, as its outcome names it.
    pub policy: String,
    /// The point, as its outcome names it.
    pub point: String,
    /// Seed of the run.
    pub seed: u64,
    /// Start of the interval, in microseconds.
    pub from_us: u64,
    /// End of the interval, exclusive, in microseconds.
    pub to_us: u64,
    /// Batches, in the order of their starts.
    pub bars: Vec<BatchBar>,
    /// Batches that were not kept.
    pub bars_dropped: u64,
    /// Ends of requests in equal parts of the interval.
    pub ends: Vec<RequestEnds>,
}

// === impl ReportData ===

impl ReportData {
    /// A report of a sweep.
    pub fn new(meta: Meta, catalog: &Catalog, runs: Vec<PolicyOutcome>) -> Self {
        Self {
            format: FORMAT,
            meta,
            catalog: CatalogData::of(catalog),
            runs,
            timelines: Vec::new(),
            scheduling: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    /// Adds the differences of all other policies from `baseline`.
    #[must_use]
    pub fn compared_with(mut self, baseline: &str) -> Self {
        self.comparisons = comparison::comparisons(&self.runs, baseline);
        self
    }

    /// Adds the time that a policy's windows took at a point.
    #[must_use]
    pub fn with_scheduling(mut self, point: &str, policy: &str, times: WindowTimes) -> Self {
        self.scheduling.push(SchedulingData {
            point: point.to_owned(),
            policy: policy.to_owned(),
            times,
        });
        self
    }

    /// Adds the timeline of one run.
    #[must_use]
    pub fn with_timeline(mut self, policy: &str, point: &str, seed: u64, seen: Timeline) -> Self {
        let (Time(from_us), Time(to_us)) = seen.interval();
        self.timelines.push(TimelineData {
            policy: policy.to_owned(),
            point: point.to_owned(),
            seed,
            from_us,
            to_us,
            bars: seen.bars,
            bars_dropped: seen.dropped,
            ends: seen.ends,
        });
        self
    }
}
