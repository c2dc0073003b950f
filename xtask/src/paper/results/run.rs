//! One run of a policy: its means, and the values by seed behind them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) point: String,
    pub(super) policy: String,
    pub(super) estimates: BTreeMap<String, Estimate>,
    /// The values behind them.
    #[serde(default)]
    pub(super) by_seed: BTreeMap<String, Vec<Option<f64>>>,
    /// The phases of the workload; estimates have their metrics too.
    #[serde(default, skip_serializing)]
    pub(super) phases: Vec<PhaseEstimates>,
    /// One per seed.
    #[serde(default)]
    pub(super) reports: Vec<SeedReport>,
}

/// The requests that arrived in one phase.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PhaseEstimates {
    pub(super) estimates: BTreeMap<String, Estimate>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PhaseReport {
    pub(super) summary: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SeedReport {
    #[serde(default, skip_serializing)]
    pub(super) phases: Vec<PhaseReport>,
    /// Answers by variant and exit; estimates have their shares.
    #[serde(default, skip_serializing)]
    pub(super) served: Vec<Served>,
    /// How often the policy was taken off for its faults.
    #[serde(default)]
    pub(super) taken_off: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Served {
    pub(super) exit: String,
    pub(super) answered: u64,
}

/// A mean, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) half_width: Option<f64>,
}

// === impl Run ===

impl Run {
    /// Adds, as the metric `exit_share_EXIT`, the share of the answers that come from exits of a name.
    pub(super) fn add_exit_shares(&mut self) {
        let served = self.reports.iter().flat_map(|report| &report.served);
        let exits: BTreeSet<String> = served.map(|served| served.exit.clone()).collect();
        for exit in exits {
            let shares: Vec<Option<f64>> = self
                .reports
                .iter()
                .map(|report| report.share(&exit))
                .collect();
            let known: Vec<f64> = shares.iter().copied().flatten().collect();
            if known.is_empty() {
                continue;
            }
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let metric = format!("exit_share_{exit}");
            self.estimates.insert(metric.clone(), Estimate::of(mean));
            self.by_seed.insert(metric, shares);
        }
    }
}

impl Run {
    /// Adds the metrics of each phase of the workload, as `METRIC_0`, `METRIC_1` and so on.
    pub(super) fn add_phases(&mut self) {
        for (at, phase) in self.phases.iter().enumerate() {
            for (metric, &estimate) in &phase.estimates {
                let of_seed = |report: &SeedReport| {
                    let value = report.phases.get(at)?.summary.get(metric)?;
                    value.as_f64()
                };
                let values: Vec<Option<f64>> = self.reports.iter().map(of_seed).collect();
                let name = format!("{metric}_{at}");
                if values.iter().any(Option::is_some) {
                    self.by_seed.insert(name.clone(), values);
                }
                self.estimates.insert(name, estimate);
            }
        }
    }
}

// === impl SeedReport ===

impl SeedReport {
    /// None without answers.
    fn share(&self, exit: &str) -> Option<f64> {
        let all: u64 = self.served.iter().map(|served| served.answered).sum();
        let of_exit = self.served.iter().filter(|served| served.exit == exit);
        let of_exit: u64 = of_exit.map(|served| served.answered).sum();
        (all > 0).then(|| of_exit as f64 / all as f64)
    }
}

// === impl Estimate ===

impl Estimate {
    /// Of one measurement.
    pub(super) fn of(mean: f64) -> Self {
        let half_width = None;
        Self { mean, half_width }
    }
}
