//! Soak runs: no rule is broken, planted defects are found, and failures are small.

use switchyard_core::catalog::Late;
use switchyard_core::planted::Planted;
use switchyard_sim::soak::PolicyKind::{Dawdling, Fickle, Mixed, Native, Parking};
use switchyard_sim::soak::SoakStep::{
    AnswerLate, Arrive, Burst, Canary, Cancel, Down, Fail, Hang, Lose, Recatalog, Remove, Slow,
    Swap, Up, Wait,
};
use switchyard_sim::soak::{
    CaseRun, CatalogChange, Ending, Rule, SoakCase, SoakFailure, SoakOptions, SoakPool, soak,
};

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

/// After the first of two overdue batches the worker has one place, until the second ends.
#[test]
#[rustfmt::skip]
fn a_worker_that_is_sent_too_many_batches_after_an_overdue_one_is_found() {
    let slack_us = 60_000_000;
    let arrive = |app| Arrive { app, slack_us, pinned: None, rows: 1.0 };
    let case = SoakCase {
        pool: SoakPool { seed: 1, workers: 1, variants: 3, percent: 100, late: [Late::Serve; 2], second_is_small: false, second_is_whole: false, queue_max: 4, parked_max: 0, pending_max: 8, faults: 4, patience_ms: 1000, follows_latencies: false, outstanding: 2, ending: Ending::ByFallback },
        steps: vec![
            arrive(0),
            arrive(1),
            Hang { worker: 0 },
            Wait { us: 40_000_000 },
            AnswerLate { worker: 0, fails: false },
            arrive(0),
        ],
    };
    assert_eq!(case.check(), Ok(()));
    let run = CaseRun {
        planted: Some(Planted::ForgottenPlaces),
        ..CaseRun::default()
    };
    let violation = case.run(run).violation;
    assert_eq!(violation.map(|violation| violation.rule), Some(Rule::OneBatch));
}

/// Late requests waited behind a lane below its `min_batch`, whose worker counted as busy.
#[test]
#[rustfmt::skip]
fn a_lane_that_never_fills_does_not_hold_up_late_requests() {
    let case = SoakCase {
        pool: SoakPool { seed: 2251, workers: 2, variants: 3, percent: 100, late: [Late::Shed, Late::Last], second_is_small: false, second_is_whole: false, queue_max: 5, parked_max: 5, pending_max: 9, faults: 4, patience_ms: 100, follows_latencies: false, outstanding: 3, ending: Ending::ByPolicy },
        steps: vec![
            Swap { policy: Parking, seed: 284652 },
            Arrive { app: 1, slack_us: 14899, pinned: None, rows: 1.0 },
            Arrive { app: 0, slack_us: 28382, pinned: None, rows: 1.0 },
            Down { worker: 4 },
            Slow { worker: 5, factor: 3 },
            Arrive { app: 0, slack_us: 3048, pinned: None, rows: 28.0 },
            Cancel { back: 3 },
            Arrive { app: 0, slack_us: 4986, pinned: None, rows: 0.25 },
            Arrive { app: 0, slack_us: 4611686018427387904, pinned: None, rows: 1.0 },
            Swap { policy: Mixed, seed: 906818 },
            Arrive { app: 1, slack_us: 13944, pinned: None, rows: 1.0 },
            Wait { us: 3021 },
            Up { worker: 4 },
            Wait { us: 1770 },
            Wait { us: 1567 },
            Fail { worker: 3, repeatable: true },
            Arrive { app: 1, slack_us: 5152, pinned: None, rows: 1.0 },
            Arrive { app: 1, slack_us: 6987, pinned: None, rows: 1.0 },
            Arrive { app: 0, slack_us: 11930, pinned: None, rows: 29.0 },
            Arrive { app: 0, slack_us: 4611686018427387904, pinned: None, rows: 1.0 },
            Lose { worker: 4 },
            Wait { us: 1500000 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// All rows of a batch left it before its start, and no window opened for the others.
#[test]
#[rustfmt::skip]
fn the_rest_is_planned_after_a_batch_that_does_not_start() {
    let case = SoakCase {
        pool: SoakPool { seed: 3278, workers: 1, variants: 3, percent: 100, late: [Late::Last, Late::Serve], second_is_small: false, second_is_whole: false, queue_max: 1, parked_max: 1, pending_max: 17, faults: 6, patience_ms: 100, follows_latencies: false, outstanding: 1, ending: Ending::ByFallback },
        steps: vec![
            Arrive { app: 1, slack_us: 21851, pinned: Some(2), rows: 29.0 },
            Hang { worker: 2 },
            Recatalog { change: CatalogChange::AddWorker },
            Wait { us: 1500000 },
            Burst { app: 1, count: 29, slack_us: 26732 },
            Down { worker: 5 },
            Wait { us: 5028 },
            Wait { us: 5064 },
            Canary { serving: Dawdling, candidate: Native, seed: 622813 },
            Wait { us: 5128 },
            Recatalog { change: CatalogChange::SwapLate },
            Wait { us: 2930 },
            Remove,
            Fail { worker: 0, repeatable: true },
            Wait { us: 688 },
            Cancel { back: 0 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// A lane that a batch leaves below its `min_batch` had no time at which it starts in any case.
#[test]
#[rustfmt::skip]
fn what_a_batch_leaves_in_a_lane_is_not_stranded() {
    let case = SoakCase {
        pool: SoakPool { seed: 3308, workers: 3, variants: 3, percent: 100, late: [Late::Serve, Late::Drop], second_is_small: false, second_is_whole: false, queue_max: 1, parked_max: 1, pending_max: 14, faults: 5, patience_ms: 100, follows_latencies: true, outstanding: 2, ending: Ending::ByFallback },
        steps: vec![
            Swap { policy: Parking, seed: 476246 },
            Slow { worker: 0, factor: 20 },
            Arrive { app: 1, slack_us: 13052, pinned: None, rows: 1.0 },
            Arrive { app: 0, slack_us: 22535, pinned: None, rows: 1.0 },
            Arrive { app: 1, slack_us: 13204, pinned: None, rows: 1.0 },
            Arrive { app: 1, slack_us: 23648, pinned: None, rows: 33.0 },
            Swap { policy: Fickle, seed: 760410 },
            Burst { app: 1, count: 6, slack_us: 18830 },
            Fail { worker: 1, repeatable: true },
            Burst { app: 0, count: 22, slack_us: 12337 },
            Wait { us: 1500000 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// The relief of a starving request ended its batch, and kept the next one waiting for one more
/// patience.
#[test]
#[rustfmt::skip]
fn a_relief_in_vain_delays_no_other_request() {
    use switchyard_core::catalog::Late::*;
    use switchyard_sim::soak::{CatalogChange::*, Ending::*, PolicyKind::*, SoakStep::*};
    use switchyard_sim::soak::{SoakCase, SoakPool};
    let case = SoakCase {
        pool: SoakPool { seed: 10697, workers: 3, variants: 3, percent: 100, late: [Drop, Last], second_is_small: false, second_is_whole: false, queue_max: 5, parked_max: 5, pending_max: 15, faults: 5, patience_ms: 1000, follows_latencies: true, outstanding: 3, ending: WithoutWorkers },
        steps: vec![
            Recatalog { change: SwapLate },
            Recatalog { change: SwapLate },
            Recatalog { change: Faster },
            Recatalog { change: SwapLate },
            Swap { policy: Mixed, seed: 712928 },
            Arrive { app: 1, slack_us: 29796, pinned: None, rows: 23.0 },
            Wait { us: 5985 },
            Recatalog { change: Same },
            Arrive { app: 0, slack_us: 23700, pinned: None, rows: 36.0 },
            Arrive { app: 0, slack_us: 26456, pinned: None, rows: 6.0 },
            Swap { policy: Parking, seed: 652472 },
            Arrive { app: 0, slack_us: 27306, pinned: None, rows: 1.0 },
            Wait { us: 1500000 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// The host had chosen a variant for a starving request that only the lost worker could hold.
#[test]
#[rustfmt::skip]
fn a_request_of_the_host_leaves_a_lost_worker_for_another_variant() {
    use switchyard_core::catalog::Late::*;
    use switchyard_sim::soak::{CatalogChange::*, Ending::*, PolicyKind::*, SoakStep::*};
    use switchyard_sim::soak::{SoakCase, SoakPool};
    let case = SoakCase {
        pool: SoakPool { seed: 64122, workers: 2, variants: 3, percent: 100, late: [Drop, Serve], second_is_small: true, second_is_whole: false, queue_max: 4, parked_max: 3, pending_max: 7, faults: 7, patience_ms: 1000, follows_latencies: true, outstanding: 2, ending: ByFallback },
        steps: vec![
            Swap { policy: Silent, seed: 653750 },
            Recatalog { change: SwapLate },
            Arrive { app: 1, slack_us: 29469, pinned: None, rows: 17.0 },
            Arrive { app: 1, slack_us: 18649, pinned: None, rows: 26.0 },
            Swap { policy: Fickle, seed: 521479 },
            Arrive { app: 0, slack_us: 28710, pinned: None, rows: 1.0 },
            Canary { serving: Parking, candidate: Trapping, seed: 111264 },
            Arrive { app: 1, slack_us: 18602, pinned: None, rows: 1.0 },
            Arrive { app: 1, slack_us: 4611686018427387904, pinned: None, rows: 1.0 },
            Hang { worker: 0 },
            Burst { app: 0, count: 16, slack_us: 16510 },
            Sleep { us: 40000000 },
            Arrive { app: 0, slack_us: 7080, pinned: None, rows: 1.0 },
            Wait { us: 1467 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// The host had chosen while no worker was up, a variant that the returned one cannot hold.
#[test]
#[rustfmt::skip]
fn a_request_of_the_host_goes_to_the_worker_that_returns() {
    use switchyard_core::catalog::Late::*;
    use switchyard_sim::soak::{Ending::*, SoakStep::*};
    use switchyard_sim::soak::{SoakCase, SoakPool};
    let case = SoakCase {
        pool: SoakPool { seed: 99036, workers: 2, variants: 3, percent: 100, late: [Last, Shed], second_is_small: true, second_is_whole: false, queue_max: 4, parked_max: 0, pending_max: 19, faults: 5, patience_ms: 100, follows_latencies: true, outstanding: 1, ending: ByPolicy },
        steps: vec![
            Arrive { app: 1, slack_us: 13926, pinned: None, rows: 1.0 },
            Lose { worker: 3 },
            Arrive { app: 1, slack_us: 17244, pinned: None, rows: 1.0 },
            Arrive { app: 1, slack_us: 4611686018427387904, pinned: None, rows: 1.0 },
            Leave { worker: 0 },
            Burst { app: 0, count: 32, slack_us: 13118 },
            Arrive { app: 1, slack_us: 23737, pinned: None, rows: 1.0 },
            Arrive { app: 0, slack_us: 4770, pinned: None, rows: 1.0 },
            Up { worker: 5 },
            Wait { us: 1500000 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}
