//! Fewer steps that break the same rule: delta debugging (Zeller and Hildebrandt, "Simplifying and
//! Isolating Failure-Inducing Input", 2002).

use super::case::{CaseRun, SoakCase};
use super::violation::Rule;

/// Most runs of one minimisation.
const RUNS_MAX: usize = 4_000;

/// Positions of the steps that a case needs to break `rule`. No single one of them can be left out, unless
/// the runs are used up.
pub fn minimise(case: &SoakCase, rule: Rule, run: CaseRun<'_>) -> Vec<usize> {
    let breaks = |keep: &[usize]| {
        let violation = case.kept(keep).run(run).violation;
        violation.is_some_and(|violation| violation.rule == rule)
    };
    let mut kept: Vec<usize> = (0..case.steps.len()).collect();
    let (mut size, mut runs) = (kept.len().div_ceil(2), 0);
    while size > 0 {
        let (mut at, mut is_smaller) = (0, false);
        while at < kept.len() && runs < RUNS_MAX {
            let end = (at + size).min(kept.len());
            let rest = [&kept[..at], &kept[end..]].concat();
            runs += 1;
            match breaks(&rest) {
                true => (kept, is_smaller) = (rest, true),
                false => at = end,
            }
        }
        if !is_smaller || size > 1 {
            size /= 2;
        }
    }
    kept
}
