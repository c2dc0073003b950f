//! The results of a run. Two runs of the same inputs are equal, bit for bit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;

use super::predictions::Predictions;
use super::summary::Summary;

/// The results of one run of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Label of the policy that was installed.
    pub policy: String,
    /// Seed of the run.
    pub seed: u64,
    /// Virtual time from the start to the end of the last request.
    pub simulated_us: Micros,
    /// Windows opened.
    pub windows: u64,
    /// All requests.
    pub total: Summary,
    /// By app, in the catalog's order.
    pub apps: Vec<PartReport>,
    /// By app, in the catalog's order: answers by true and predicted class. Without the apps that
    /// have more than two classes and an exit whose confusion matrix is unknown.
    #[serde(default)]
    pub predictions: Vec<Predictions>,
    /// By phase of the workload; empty if it has a single one.
    pub phases: Vec<PartReport>,
    /// Batches by size.
    pub batches: BatchReport,
    /// Answers by variant and exit, in the catalog's order.
    pub served: Vec<Served>,
    /// By worker, in the catalog's order; empty if a live server ran the batches.
    pub workers: Vec<WorkerReport>,
    /// Present if the profile knows the energy of every batch that ran.
    pub energy: Option<EnergyReport>,
    /// Windows that the policy failed, by kind of fault.
    pub faults: BTreeMap<String, u64>,
    /// Times that a policy was taken off after too many faults.
    pub taken_off: u64,
    /// Requests left when the time to finish was over; the native fallback served them.
    pub abandoned: u64,
    /// The core's ledger: ended requests by outcome.
    pub ledger: BTreeMap<String, u64>,
}

/// Metrics of the requests of one app or one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartReport {
    /// The app, or the phase as `STREAM:PROCESS[PHASE]`.
    pub name: String,
    /// Its metrics.
    pub summary: Summary,
}

/// Batches of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchReport {
    /// Number of batches.
    pub count: u64,
    /// Mean number of requests in a batch.
    pub size_mean: Option<f64>,
    /// Batches by size, from 0 on.
    pub sizes: Vec<u64>,
}

/// Answers of one exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// The app.
    pub app: String,
    /// The variant.
    pub variant: String,
    /// The exit.
    pub exit: String,
    /// Requests it answered.
    pub answered: u64,
    /// Share of its app's answers; short-circuits count in the whole.
    pub share: f64,
}

/// Work of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Its name.
    pub name: String,
    /// Batches it ran.
    pub batches: u64,
    /// Time it ran them, in microseconds.
    pub busy_us: u64,
    /// Models it loaded while a batch waited.
    pub loads: u64,
    /// Time of those loads, in microseconds.
    pub load_us: u64,
}

/// Energy of a run (MAEL section 5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyReport {
    /// All batches, in joules.
    pub total_j: f64,
    /// Per answered request, in joules.
    pub per_answer_j: f64,
    /// Answers per joule: answers per second for every watt ("performance per watt").
    pub answers_per_j: f64,
    /// Energy-delay product: energy per answer times mean latency, in joule seconds.
    pub edp_js: f64,
    /// Energy per answer times the square of the mean latency, in joule square seconds.
    pub ed2p_js2: f64,
}

// === impl Report ===

impl Report {
    /// Every metric that can be averaged over seeds, by name.
    pub fn scalars(&self) -> Vec<(&'static str, Option<f64>)> {
        let energy = self.energy.as_ref();
        let mut scalars = self.total.scalars();
        scalars.extend([
            ("accuracy_app_mean", self.accuracy_app_mean()),
            ("windows", Some(self.windows as f64)),
            ("batch_size_mean", self.batches.size_mean),
            ("utilisation", self.utilisation()),
            (
                "p99_over_deadline_app_max",
                self.p99_over_deadline_app_max(),
            ),
            ("energy_per_answer_j", energy.map(|e| e.per_answer_j)),
            ("answers_per_j", energy.map(|e| e.answers_per_j)),
            ("edp_js", energy.map(|e| e.edp_js)),
            ("ed2p_js2", energy.map(|e| e.ed2p_js2)),
        ]);
        scalars
    }

    /// Profiled accuracy of the answers of each app, averaged over the apps with equal weights.
    /// Apps without an answer are left out.
    pub fn accuracy_app_mean(&self) -> Option<f64> {
        let apps = self.apps.iter();
        let accuracies: Vec<f64> = apps
            .filter_map(|app| app.summary.accuracy_profiled)
            .collect();
        let sum: f64 = accuracies.iter().sum();
        (!accuracies.is_empty()).then(|| sum / accuracies.len() as f64)
    }

    /// 99th percentile of latency over deadline of the app in which it is worst (MAEL Figure 8).
    pub fn p99_over_deadline_app_max(&self) -> Option<f64> {
        let apps = self.apps.iter();
        let tails = apps.filter_map(|app| app.summary.p99_over_deadline);
        tails.reduce(f64::max)
    }

    /// Mean share of the time that workers ran batches.
    pub fn utilisation(&self) -> Option<f64> {
        let available = self.simulated_us.0 as f64 * self.workers.len() as f64;
        let busy: u64 = self.workers.iter().map(|worker| worker.busy_us).sum();
        (available > 0.0).then(|| busy as f64 / available)
    }
}

// === impl WorkerReport ===

impl WorkerReport {
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }
}
