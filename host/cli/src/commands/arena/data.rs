//! The results of an arena, as programs read them.

use std::collections::BTreeMap;

use serde::Serialize;
use switchyard_profile::Machine;
use switchyard_sim::metrics::Estimate;
use switchyard_sim::overhead::WindowTimes;
use switchyard_sim::report::Verdict;

/// Version of the JSON form; grows when a field changes its meaning or is removed.
pub(super) const FORMAT: u32 = 1;

/// Everything that a scoreboard shows. Units are in the names of fields; ratios and accuracies are 0
/// to 1. All but [`measured`](Self::measured) repeats bit for bit.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ArenaData {
    pub(super) format: u32,
    /// Version of the program.
    pub(super) version: String,
    /// The formula of the score.
    pub(super) rule: String,
    /// One run each.
    pub(super) seeds: Vec<u64>,
    pub(super) policies: Vec<PolicyData>,
    pub(super) test_beds: Vec<TestBedData>,
    pub(super) workloads: Vec<WorkloadData>,
    /// From the highest score to the lowest; without policies that all cells refuse.
    pub(super) ranking: Vec<RankData>,
    /// By test bed, then by workload.
    pub(super) cells: Vec<CellData>,
    /// Times of the machine that ran the arena.
    pub(super) measured: Measured,
}

/// A policy that takes part.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PolicyData {
    pub(super) policy: String,
    /// Whether it competes with the shipped ones, which are the baselines.
    pub(super) entrant: bool,
    /// `name@version`, from its description; empty if no test bed suits it.
    pub(super) label: String,
    /// Content hash of the component, hexadecimal; empty for a native policy.
    pub(super) hash: String,
    /// Its settings, as JSON.
    pub(super) settings: String,
}

/// A pool with its load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestBedData {
    pub(super) test_bed: String,
    pub(super) title: String,
    pub(super) apps: Vec<String>,
    pub(super) workers: Vec<String>,
    /// Mean arrivals over the capacity.
    pub(super) load: f64,
    pub(super) capacity_per_s: f64,
    /// Virtual seconds of a run; a given trace runs to its end.
    pub(super) seconds: f64,
    /// Times each app's SLO.
    pub(super) deadline: f64,
    /// Content hash of the profile, hexadecimal.
    pub(super) profile_hash: String,
}

/// A workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WorkloadData {
    pub(super) workload: String,
    pub(super) title: String,
}

/// A policy's place.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RankData {
    pub(super) place: usize,
    pub(super) policy: String,
    pub(super) entrant: bool,
    pub(super) score: Estimate,
    pub(super) by_seed: Vec<f64>,
    pub(super) against: Option<AgainstData>,
    /// Mean over the cells that it ran.
    pub(super) violation_ratio: Option<f64>,
    /// Mean over the cells that it ran.
    pub(super) accuracy: Option<f64>,
    /// Cells that it ran, of those that any policy ran.
    pub(super) cells_run: usize,
    pub(super) cells: usize,
    /// Windows that it failed, in all runs.
    pub(super) faults: u64,
}

/// The difference from the best other shipped policy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AgainstData {
    pub(super) baseline: String,
    pub(super) difference: Estimate,
    pub(super) verdict: Verdict,
}

/// A workload on a test bed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CellData {
    pub(super) test_bed: String,
    pub(super) workload: String,
    pub(super) rate_per_s: f64,
    /// Virtual seconds in which requests arrive.
    pub(super) seconds: f64,
    /// Why the workload does not fit the test bed.
    pub(super) refused: Option<String>,
    /// The policy of the highest utility.
    pub(super) best: Option<String>,
    /// In the order of the policies.
    pub(super) results: Vec<ResultData>,
}

/// A policy in a cell.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ResultData {
    pub(super) policy: String,
    /// Why there is no result.
    pub(super) refused: Option<String>,
    pub(super) utility: Option<Estimate>,
    /// Utilities, in the order of the seeds.
    pub(super) by_seed: Vec<f64>,
    /// Mean utility over the best of the cell; 0 without a result.
    pub(super) relative: f64,
    pub(super) against: Option<AgainstData>,
    /// Arrivals that were not answered in time.
    pub(super) violation_ratio: Option<Estimate>,
    /// Expected accuracy of the answers.
    pub(super) accuracy: Option<Estimate>,
    pub(super) latency_p99_ms: Option<Estimate>,
    /// Requests of all runs.
    pub(super) arrivals: u64,
    /// Windows of all runs.
    pub(super) windows: u64,
    /// Windows that it failed and the fallback served, by kind of fault.
    pub(super) faults: BTreeMap<String, u64>,
    /// The reason of the first one.
    pub(super) fault: Option<String>,
    /// Times that it was taken off after too many faults.
    pub(super) taken_off: u64,
}

/// Times of one machine: they differ between two runs of a command.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) command: String,
    pub(super) machine: Machine,
    /// Time of the arena.
    pub(super) seconds: f64,
    /// Host time of windows.
    pub(super) windows: Vec<WindowCostData>,
}

/// Host time of a policy's windows on a test bed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WindowCostData {
    pub(super) policy: String,
    pub(super) test_bed: String,
    #[serde(flatten)]
    pub(super) times: WindowTimes,
}

// === impl ResultData ===

impl ResultData {
    /// Windows that the policy failed.
    pub(super) fn faults_total(&self) -> u64 {
        self.faults.values().sum()
    }
}
