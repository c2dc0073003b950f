//! What a report is made of, as a program reads it.

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Time;

use super::comparison::{self, Comparison};
use crate::overhead::WindowTimes;
use crate::runner::Outcome;
use crate::timeline::{Bar, Ends, Timeline};

/// Version of the JSON form; grows when a field changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// Everything a report shows. Units are in the names of fields; ratios and accuracies are 0 to
/// 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportData {
    /// [`FORMAT`] of the version that wrote it.
    pub format: u32,
    /// What was asked for.
    pub meta: Meta,
    /// What there was to choose from, at the point that had the most of it.
    pub catalog: CatalogData,
    /// Results by point, then by policy.
    pub runs: Vec<Outcome>,
    /// What ran where, of the runs that were watched.
    pub timelines: Vec<TimelineData>,
    /// What policies cost the machine that simulated, by point and policy. Host time: the one part
    /// that differs from one run of a command to the next.
    #[serde(default)]
    pub scheduling: Vec<SchedulingData>,
    /// What the policies change against one of them, where that was asked for.
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
    /// How long its windows took.
    #[serde(flatten)]
    pub times: WindowTimes,
}

/// What outcomes do not say of themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Heading of the page.
    pub title: String,
    /// The command line that makes the same report.
    pub command: String,
    /// When it was made, as the caller writes dates.
    pub date: String,
    /// What arrived, as a spec.
    pub workload: String,
    /// Where the latencies came from.
    pub profile: String,
    /// Virtual seconds in which requests arrived.
    pub seconds: f64,
    /// One run each.
    pub seeds: Vec<u64>,
    /// The parameter that was varied.
    pub axis: Option<Axis>,
    /// The deadline of all requests, where they have the same one; marked in plots of latency.
    pub deadline_ms: Option<f64>,
}

/// The parameter of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// As points are named: `load` in `load=1.5`.
    pub name: String,
    /// As axes are labelled, with its unit: `load, times the workload's rates`.
    pub label: String,
}

/// What there is to choose from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CatalogData {
    /// The apps.
    pub apps: Vec<AppData>,
    /// The variants of all apps; timelines name them by their position here.
    pub variants: Vec<VariantData>,
    /// The workers; timelines name them by their position here.
    pub workers: Vec<WorkerData>,
}

/// One app.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppData {
    /// Its name.
    pub name: String,
    /// Its deadline where the workload gives no other, in milliseconds.
    pub slo_ms: f64,
    /// Number of its classes.
    pub classes: usize,
}

/// One variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantData {
    /// Its name.
    pub name: String,
    /// Its app.
    pub app: String,
    /// Most requests in a batch.
    pub batch_size_max: u32,
    /// Memory while it is resident, in bytes.
    pub memory_bytes: u64,
    /// Its exits, the last one answering always.
    pub exits: Vec<ExitData>,
}

/// One exit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExitData {
    /// Its name.
    pub name: String,
    /// Accuracy on the app's test set.
    pub accuracy: f64,
}

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerData {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
}

/// What ran where under one policy in an interval of one run.
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
    /// Its end, not part of it, in microseconds.
    pub to_us: u64,
    /// Batches, by the time they were started.
    pub bars: Vec<Bar>,
    /// Batches that were not kept.
    pub bars_dropped: u64,
    /// Ends of requests in equal parts of the interval.
    pub ends: Vec<Ends>,
}

// === impl ReportData ===

impl ReportData {
    /// A report of a sweep.
    pub fn new(meta: Meta, catalog: &Catalog, runs: Vec<Outcome>) -> Self {
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

    /// Adds what the policies change against one of them.
    #[must_use]
    pub fn compared_with(mut self, baseline: &str) -> Self {
        self.comparisons = comparison::comparisons(&self.runs, baseline);
        self
    }

    /// Adds what a policy's windows took at a point.
    #[must_use]
    pub fn with_scheduling(mut self, point: &str, policy: &str, times: WindowTimes) -> Self {
        self.scheduling.push(SchedulingData {
            point: point.to_owned(),
            policy: policy.to_owned(),
            times,
        });
        self
    }

    /// Adds what was watched of one run.
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

// === impl CatalogData ===

impl CatalogData {
    /// Of a catalog.
    pub fn of(catalog: &Catalog) -> Self {
        let apps = catalog.apps.iter().map(|app| AppData {
            name: app.name.clone(),
            slo_ms: app.slo.as_secs_f64() * 1e3,
            classes: app.classes.len(),
        });
        let workers = catalog.workers.iter().map(|worker| WorkerData {
            name: worker.name.clone(),
            kind: catalog.kinds[worker.kind.index()].clone(),
        });
        let variants = catalog.variants.iter().map(|variant| VariantData {
            name: variant.name.clone(),
            app: catalog.apps[variant.app.index()].name.clone(),
            batch_size_max: variant.max_batch,
            memory_bytes: variant.memory_bytes,
            exits: variant.exits.iter().map(ExitData::of).collect(),
        });
        Self {
            variants: variants.collect(),
            apps: apps.collect(),
            workers: workers.collect(),
        }
    }
}

// === impl ExitData ===

impl ExitData {
    fn of(exit: &switchyard_core::catalog::Exit) -> Self {
        Self {
            name: exit.name.clone(),
            accuracy: exit.accuracy,
        }
    }
}
