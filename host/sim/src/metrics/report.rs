//! What a run reports. Two runs of the same inputs are equal, bit for bit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Micros;

use super::Meters;
use super::cell::Cell;
use super::predictions::{self, Predictions};
use super::summary::Summary;

/// Everything one run of one policy reports.
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
    pub apps: Vec<Part>,
    /// By app, in the catalog's order: what its answers said. Apps with an exit whose confusion
    /// matrix is not known are left out, unless they have two classes.
    #[serde(default)]
    pub predictions: Vec<Predictions>,
    /// By phase of the workload, where it has several.
    pub phases: Vec<Part>,
    /// What ran.
    pub batches: BatchReport,
    /// By variant and exit, in the catalog's order.
    pub served: Vec<Served>,
    /// By worker, in the catalog's order.
    pub workers: Vec<WorkerReport>,
    /// Present when the profile knows the energy of every batch that ran.
    pub energy: Option<EnergyReport>,
    /// Windows that the policy failed, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Times that a policy was taken off for failing too often.
    pub taken_off: u64,
    /// Requests left when the time to finish was over, which the native fallback then served.
    pub abandoned: u64,
    /// The core's own books: ended requests by outcome.
    pub ledger: BTreeMap<String, u64>,
}

/// Metrics of some of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The app, or the phase as `STREAM:PROCESS[PHASE]`.
    pub name: String,
    /// Its metrics.
    pub summary: Summary,
}

/// Batches of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchReport {
    /// How many ran.
    pub count: u64,
    /// Mean number of requests in one.
    pub size_mean: Option<f64>,
    /// Batches by size, from 0 on.
    pub sizes: Vec<u64>,
}

/// How much one exit answered.
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
    /// Share of its app's answers, short-circuits included in the whole.
    pub share: f64,
}

/// What one worker did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Its name.
    pub name: String,
    /// Batches it ran.
    pub batches: u64,
    /// Time it ran them, in microseconds.
    pub busy_us: u64,
    /// Models it had to load.
    pub loads: u64,
    /// Time that took, in microseconds.
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

    /// Profiled accuracy of the answers of each app, averaged over the apps: how often each is
    /// asked does not count. Apps without an answer are left out.
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

/// What the driver adds to the counts.
pub(crate) struct Closing<'a> {
    pub(crate) policy: String,
    pub(crate) seed: u64,
    pub(crate) simulated: Micros,
    pub(crate) windows: u64,
    pub(crate) abandoned: u64,
    pub(crate) phases: &'a [String],
    pub(crate) ledger: &'a BTreeMap<&'static str, u64>,
}

// === impl Meters ===

impl Meters {
    pub(crate) fn report(self, closing: Closing<'_>, catalog: &Catalog) -> Report {
        let seconds = closing.simulated.as_secs_f64();
        let total = Summary::new(&sum(&self.cells), seconds);
        let by_app = self.cells.chunks(self.phases).map(sum);
        let apps: Vec<Part> = by_app
            .zip(&catalog.apps)
            .map(|(cell, app)| Part {
                name: app.name.clone(),
                summary: Summary::new(&cell, seconds),
            })
            .collect();
        Report {
            phases: self.by_phase(closing.phases, seconds),
            batches: self.batches(),
            served: self.served(&apps, catalog),
            energy: self.energy(&total),
            predictions: predictions::report(&self.predictions, catalog),
            policy: closing.policy,
            seed: closing.seed,
            simulated_us: closing.simulated,
            windows: closing.windows,
            total,
            apps,
            workers: self.workers,
            faults: self.faults,
            taken_off: self.policies_taken_off,
            abandoned: closing.abandoned,
            ledger: closing
                .ledger
                .iter()
                .map(|(&outcome, &count)| (outcome.to_owned(), count))
                .collect(),
        }
    }

    fn by_phase(&self, names: &[String], seconds: f64) -> Vec<Part> {
        if self.phases < 2 {
            return Vec::new();
        }
        let phase = |(at, name): (usize, &String)| Part {
            name: name.clone(),
            summary: Summary::new(
                &sum(self.cells.iter().skip(at).step_by(self.phases)),
                seconds,
            ),
        };
        names.iter().enumerate().map(phase).collect()
    }

    fn batches(&self) -> BatchReport {
        let count = self.sizes.iter().sum();
        let requests: u64 = (0..).zip(&self.sizes).map(|(size, n)| size * n).sum();
        BatchReport {
            count,
            size_mean: (count > 0).then(|| requests as f64 / count as f64),
            sizes: self.sizes.clone(),
        }
    }

    fn served(&self, apps: &[Part], catalog: &Catalog) -> Vec<Served> {
        let exits = catalog.variants.iter().zip(&self.served);
        exits
            .flat_map(|(variant, counts)| {
                let app = &apps[variant.app.index()];
                let answers = app.summary.answered().max(1) as f64;
                variant
                    .exits
                    .iter()
                    .zip(counts)
                    .map(move |(exit, &answered)| Served {
                        app: app.name.clone(),
                        variant: variant.name.clone(),
                        exit: exit.name.clone(),
                        answered,
                        share: answered as f64 / answers,
                    })
            })
            .collect()
    }

    fn energy(&self, total: &Summary) -> Option<EnergyReport> {
        let answered = total.answered();
        if self.energy_unknown > 0 || self.energy_uj == 0 || answered == 0 {
            return None;
        }
        let total_j = self.energy_uj as f64 / 1e6;
        let per_answer_j = total_j / answered as f64;
        let delay_s = total.latency.mean_ms / 1e3;
        Some(EnergyReport {
            total_j,
            per_answer_j,
            answers_per_j: per_answer_j.recip(),
            edp_js: per_answer_j * delay_s,
            ed2p_js2: per_answer_j * delay_s * delay_s,
        })
    }
}

fn sum<'a>(cells: impl IntoIterator<Item = &'a Option<Box<Cell>>>) -> Cell {
    cells
        .into_iter()
        .flatten()
        .fold(Cell::default(), |mut sum, cell| {
            sum.add(cell);
            sum
        })
}
