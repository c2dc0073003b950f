//! Soak runs: no rule is broken, planted defects are found, and failures are small.

use switchyard_core::planted::Planted;
use switchyard_sim::soak::{CaseRun, Rule, SoakCase, SoakFailure, SoakOptions, soak};

/// As many as `switchyard soak` injects.
const FAULTS: u64 = 1_000_000;

/// Seeds within which each planted defect is found.
const SEEDS: u64 = 512;

#[test]
fn no_rule_is_broken() {
    let report = soak(&SoakOptions {
        faults: FAULTS,
        ..SoakOptions::default()
    });
    assert!(report.failure.is_none(), "{:#?}", report.failure);
    assert!(report.faults() >= FAULTS && report.repeated > 0);
    assert_eq!(report.imbalance, 0);
    // Requests that are never due may be left.
    assert!(report.answers > report.requests * 9 / 10, "{report:?}");
    let rare = report.faults.iter().find(|(_, count)| **count < 20);
    assert_eq!(rare, None, "too rare to find anything");
    assert_eq!(report.faults.len(), 34, "{:?}", report.faults);
}

fn found(planted: Planted) -> SoakFailure {
    let report = soak(&SoakOptions {
        faults: u64::MAX,
        seeds_max: Some(SEEDS),
        planted: Some(planted),
        ..SoakOptions::default()
    });
    let failure = report.failure;
    failure.unwrap_or_else(|| panic!("{planted:?} is not found in {SEEDS} seeds"))
}

#[test]
fn a_stranded_queue_is_found() {
    let failure = found(Planted::StrandedQueue);
    assert_eq!(failure.violation.rule, Rule::Progress, "{failure:#?}");
    is_minimal(&failure, Planted::StrandedQueue);
}

#[test]
fn activations_that_are_kept_are_found() {
    let failure = found(Planted::KeptActivations);
    assert_eq!(failure.violation.rule, Rule::Release, "{failure:#?}");
    is_minimal(&failure, Planted::KeptActivations);
}

#[test]
fn a_forgotten_wakeup_is_found() {
    let failure = found(Planted::ForgottenWakeup);
    assert_eq!(failure.violation.rule, Rule::Progress, "{failure:#?}");
    is_minimal(&failure, Planted::ForgottenWakeup);
}

/// Few steps are left, and none of them can be left out.
fn is_minimal(failure: &SoakFailure, planted: Planted) {
    let case = SoakCase::of(failure.seed);
    let keep: Vec<usize> = (failure.keep.split(','))
        .flat_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            from.parse().unwrap()..=to.parse().unwrap()
        })
        .collect();
    assert!(keep.len() <= 20, "{failure:#?}");
    let run = CaseRun {
        planted: Some(planted),
        ..CaseRun::default()
    };
    let breaks = |keep: &[usize]| {
        let violation = case.kept(keep).run(run).violation;
        violation.is_some_and(|violation| violation.rule == failure.violation.rule)
    };
    assert!(breaks(&keep));
    for left_out in 0..keep.len() {
        let mut fewer = keep.clone();
        fewer.remove(left_out);
        assert!(!breaks(&fewer), "step {} is not needed", keep[left_out]);
    }
    assert_eq!(case.kept(&keep).check(), Ok(()), "without the defect");
}
