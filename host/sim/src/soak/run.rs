//! Many seeds, up to a number of faults or the first broken rule.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use switchyard_core::planted::Planted;

use super::case::{CaseOutcome, CaseRun, SoakCase};
use super::minimise::minimise;
use super::text::ranges;
use super::violation::{Rule, Violation};
use super::world::SoakPolicy;

/// Seeds that are run at once. The result does not depend on it.
const AT_ONCE: u64 = 64;

/// One seed in this many is run twice.
const REPEAT_EVERY: u64 = 16;

/// The extent of a soak run.
#[derive(Clone, Default)]
pub struct SoakOptions {
    /// The first seed.
    pub seed: u64,
    /// Faults after which no further seed begins.
    pub faults: u64,
    /// Seeds after which none begins.
    pub seeds_max: Option<u64>,
    /// Policies from outside, installed by half of the swaps.
    pub policies: Vec<SoakPolicy>,
    /// A defect of the core, in builds with debug assertions.
    pub planted: Option<Planted>,
}

/// The sums of a soak run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SoakReport {
    /// Seeds that were run.
    pub seeds: u64,
    /// Those that were run twice, with the same commands.
    pub repeated: u64,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Events and wake-ups; after each of them all rules were checked.
    pub events: u64,
    /// Requests that arrived.
    pub requests: u64,
    /// Their answers.
    pub answers: u64,
    /// Accepted less ended less live requests, over all seeds.
    pub imbalance: i64,
    /// The first broken rule.
    pub failure: Option<SoakFailure>,
}

/// A seed that broke a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakFailure {
    /// The seed.
    pub seed: u64,
    /// Positions of the steps that it needs, such as `3,7-9`.
    pub keep: String,
    /// The rule that these steps break.
    pub violation: Violation,
    /// A test with these steps.
    pub test: String,
}

// === impl SoakReport ===

impl SoakReport {
    /// All faults.
    pub fn faults(&self) -> u64 {
        self.faults.values().sum()
    }

    fn add(&mut self, outcome: &CaseOutcome) {
        self.seeds += 1;
        self.repeated += u64::from(outcome.hash.is_some());
        for (label, count) in &outcome.faults {
            *self.faults.entry(label).or_default() += count;
        }
        self.events += outcome.events;
        self.requests += outcome.requests;
        self.answers += outcome.answers;
        self.imbalance += outcome.imbalance;
    }
}

/// Runs seed after seed.
pub fn soak(options: &SoakOptions) -> SoakReport {
    let mut report = SoakReport::default();
    let most = options.seeds_max.unwrap_or(u64::MAX);
    while report.failure.is_none() && report.faults() < options.faults && report.seeds < most {
        let first = options.seed.wrapping_add(report.seeds);
        let seeds = (0..AT_ONCE.min(most - report.seeds)).map(|at| first.wrapping_add(at));
        let seeds: Vec<u64> = seeds.collect();
        let run = |&seed: &u64| (seed, run_seed(seed, options));
        let outcomes: Vec<_> = seeds.par_iter().map(run).collect();
        for (seed, outcome) in outcomes {
            report.add(&outcome);
            if let Some(violation) = outcome.violation {
                report.failure = Some(failure(seed, violation, options));
                break;
            }
            if report.faults() >= options.faults {
                break;
            }
        }
    }
    report
}

fn case_run(options: &SoakOptions, hashes: bool) -> CaseRun<'_> {
    CaseRun {
        policies: &options.policies,
        planted: options.planted,
        hashes,
    }
}

fn run_seed(seed: u64, options: &SoakOptions) -> CaseOutcome {
    let case = SoakCase::of(seed);
    let repeats = seed.is_multiple_of(REPEAT_EVERY);
    let mut outcome = case.run(case_run(options, repeats));
    if repeats && outcome.violation.is_none() {
        let again = case.run(case_run(options, true));
        if again.hash != outcome.hash {
            let detail = format!(
                "{:?} and {:?} as hashes of commands",
                outcome.hash, again.hash
            );
            outcome.violation = Some(Violation {
                rule: Rule::Determinism,
                at_us: 0,
                detail,
            });
        }
    }
    outcome
}

fn failure(seed: u64, violation: Violation, options: &SoakOptions) -> SoakFailure {
    let case = SoakCase::of(seed);
    let run = case_run(options, false);
    let keep = match violation.rule {
        // One run does not show it.
        Rule::Determinism => (0..case.steps.len()).collect(),
        rule => minimise(&case, rule, run),
    };
    let kept = case.kept(&keep);
    let violation = kept.run(run).violation.unwrap_or(violation);
    SoakFailure {
        seed,
        keep: ranges(&keep),
        test: kept.as_test(&violation),
        violation,
    }
}
