//! From runs to results.

use std::collections::BTreeMap;

use switchyard_sim::metrics::{Estimate, Report};
use switchyard_sim::report::Verdict;

use super::bed::Bed;
use super::contest::{ArenaCell, ArenaWorkload, Contest, Entry, Played};
use super::data::{
    AgainstData, ArenaData, CellData, FORMAT, Measured, PolicyData, RankData, ResultData,
    TestBedData, WorkloadData,
};
use super::score::{self, Against, BySeed};

/// The metrics of a cell, as [`Report::scalars`] names them.
const UTILITY: &str = "utility";
const VIOLATIONS: &str = "violation_ratio";
const ACCURACY: &str = "accuracy_expected";
const P99: &str = "latency_p99_ms";

/// The results; `played` is by cell, then by policy.
pub(super) fn of(contest: &Contest, played: Vec<Vec<Played>>, measured: Measured) -> ArenaData {
    let is_baseline = contest.policies.iter().map(|entry| !entry.is_entrant);
    let names = contest.policies.iter();
    let field = Field {
        names: names.map(|entry| entry.named.name.as_str()).collect(),
        is_baseline: is_baseline.collect(),
        seeds: contest.seeds.len(),
    };
    let utilities: Vec<BySeed> = played.iter().map(|cell| utilities(cell)).collect();
    let cells = contest.cells.iter().zip(&played).zip(&utilities);
    let cells: Vec<CellData> = cells
        .map(|((cell, played), utilities)| CellData {
            test_bed: contest.beds[cell.bed].name.clone(),
            workload: contest.workloads[cell.workload].name().to_owned(),
            ..field.cell(cell, played, utilities)
        })
        .collect();
    ArenaData {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rule: score::RULE.to_owned(),
        seeds: contest.seeds.clone(),
        policies: contest.policies.iter().map(policy_data).collect(),
        test_beds: contest.beds.iter().map(bed_data).collect(),
        workloads: contest.workloads.iter().map(workload_data).collect(),
        ranking: field.ranking(&utilities, &cells),
        cells,
        measured,
    }
}

/// The policies that compete.
struct Field<'a> {
    names: Vec<&'a str>,
    is_baseline: Vec<bool>,
    seeds: usize,
}

// === impl Field ===

impl Field<'_> {
    /// Without the names of test bed and workload.
    fn cell(&self, cell: &ArenaCell, played: &[Played], utilities: &BySeed) -> CellData {
        let best = score::best(utilities);
        let results = played.iter().enumerate().map(|(policy, played)| {
            let reports = played.reports.as_deref().unwrap_or_default();
            let mean = |name| Estimate::of(&values(reports, name));
            let by_seed = utilities[policy].clone().unwrap_or_default();
            let relative = best.filter(|(_, best)| *best > 0.0);
            ResultData {
                policy: self.names[policy].to_owned(),
                refused: played.reports.as_ref().err().cloned(),
                relative: relative.map_or(0.0, |(_, best)| score::mean(&by_seed) / best),
                utility: Estimate::of(&by_seed),
                against: self.against(utilities, policy),
                violation_ratio: mean(VIOLATIONS),
                accuracy: mean(ACCURACY),
                latency_p99_ms: mean(P99),
                arrivals: reports.iter().map(|report| report.total.arrivals).sum(),
                windows: reports.iter().map(|report| report.windows).sum(),
                faults: faults(reports),
                fault: played.fault.clone(),
                taken_off: reports.iter().map(|report| report.taken_off).sum(),
                by_seed,
            }
        });
        let scenario = cell.scenario.as_ref();
        CellData {
            test_bed: String::new(),
            workload: String::new(),
            rate_per_s: cell.rate_per_s,
            seconds: scenario.map_or(0.0, |scenario| scenario.duration.as_secs_f64()),
            refused: scenario.err().cloned(),
            best: best.map(|(policy, _)| self.names[policy].to_owned()),
            results: results.collect(),
        }
    }

    fn ranking(&self, utilities: &[BySeed], cells: &[CellData]) -> Vec<RankData> {
        let scores = score::scores(utilities, self.names.len(), self.seeds);
        let some: BySeed = scores.iter().cloned().map(Some).collect();
        let ran = |cell: &&CellData| cell.best.is_some();
        let runs = |policy: &usize| utilities.iter().any(|cell| cell[*policy].is_some());
        let places = (1..).zip(score::order(&scores).into_iter().filter(runs));
        let ranks = places.filter_map(|(place, policy)| {
            let own = cells.iter().filter(ran).map(|cell| &cell.results[policy]);
            let own: Vec<&ResultData> = own.collect();
            let mean_over = |value: fn(&ResultData) -> Option<Estimate>| {
                let values = own.iter().filter_map(|result| Some(value(result)?.mean));
                Estimate::of(&values.collect::<Vec<_>>()).map(|over| over.mean)
            };
            Some(RankData {
                place,
                policy: self.names[policy].to_owned(),
                entrant: !self.is_baseline[policy],
                score: Estimate::of(&scores[policy])?,
                by_seed: scores[policy].clone(),
                against: self.against(&some, policy),
                violation_ratio: mean_over(|result| result.violation_ratio),
                accuracy: mean_over(|result| result.accuracy),
                cells_run: own.iter().filter(|result| result.refused.is_none()).count(),
                cells: own.len(),
                faults: own.iter().map(|result| result.faults_total()).sum(),
            })
        });
        ranks.collect()
    }

    fn against(&self, values: &BySeed, policy: usize) -> Option<AgainstData> {
        let Against { baseline, effect } = score::against(values, &self.is_baseline, policy)?;
        Some(AgainstData {
            baseline: self.names[baseline].to_owned(),
            difference: effect.difference,
            verdict: match effect.is_noise() {
                true => Verdict::Noise,
                false if effect.difference.mean > 0.0 => Verdict::Better,
                false => Verdict::Worse,
            },
        })
    }
}

fn utilities(cell: &[Played]) -> BySeed {
    let of_policy = |played: &Played| Some(values(played.reports.as_ref().ok()?, UTILITY));
    cell.iter().map(of_policy).collect()
}

/// A metric by seed.
fn values(reports: &[Report], name: &str) -> Vec<f64> {
    let value = |report: &Report| {
        let mut scalars = report.scalars().into_iter();
        scalars.find(|(own, _)| *own == name)?.1
    };
    reports.iter().filter_map(value).collect()
}

fn faults(reports: &[Report]) -> BTreeMap<String, u64> {
    let mut faults = BTreeMap::new();
    for (kind, count) in reports.iter().flat_map(|report| &report.faults) {
        if *count > 0 {
            *faults.entry(kind.clone()).or_default() += count;
        }
    }
    faults
}

fn policy_data(entry: &Entry) -> PolicyData {
    let record = entry.record.clone().unwrap_or_default();
    PolicyData {
        policy: entry.named.name.clone(),
        entrant: entry.is_entrant,
        label: record.label,
        hash: record.code,
        settings: record.settings,
    }
}

fn bed_data(bed: &Bed) -> TestBedData {
    let catalog = &bed.base.catalog;
    TestBedData {
        test_bed: bed.name.clone(),
        title: bed.title.clone(),
        apps: catalog.apps.iter().map(|app| app.name.clone()).collect(),
        workers: catalog.workers.iter().map(|own| own.name.clone()).collect(),
        load: bed.load,
        capacity_per_s: bed.capacity_per_s,
        seconds: bed.seconds,
        deadline: bed.deadline,
        profile_hash: bed.profile_hash.clone(),
    }
}

fn workload_data(workload: &ArenaWorkload) -> WorkloadData {
    WorkloadData {
        workload: workload.name().to_owned(),
        title: workload.title().to_owned(),
    }
}
