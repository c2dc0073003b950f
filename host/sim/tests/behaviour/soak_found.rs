//! Cases that broke a rule once, as `switchyard soak` printed them. `text.rs` of the soak prints what
//! compiles here.

#[allow(unused_imports, reason = "a printed case names any of them")]
use switchyard_core::catalog::Late::*;
#[allow(unused_imports, reason = "a printed case names any of them")]
use switchyard_sim::soak::{CatalogChange::*, Ending::*, PolicyKind::*, SoakStep::*};
use switchyard_sim::soak::{SoakCase, SoakPool};

/// one batch at 0 us: batch 2 on worker 0: a request is of another app or pinned to another variant
#[test]
#[rustfmt::skip]
fn seed_1() {
    let case = SoakCase {
        pool: SoakPool { seed: 1, workers: 1, variants: 3, percent: 100, late: [Last, Drop], second_is_small: false, second_is_whole: false, queue_max: 1, parked_max: 8, pending_max: 11, faults: 3, patience_ms: 1000, follows_latencies: true, outstanding: 1, ending: ByFallback },
        steps: vec![
            Arrive { app: 0, slack_us: 6226, pinned: Some(1), rows: 1.0 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// one batch at 3000 us: batch 6 on worker 1: a request is of another app or pinned to another variant
#[test]
#[rustfmt::skip]
fn seed_514() {
    let case = SoakCase {
        pool: SoakPool { seed: 514, workers: 2, variants: 3, percent: 100, late: [Last, Shed], second_is_small: false, second_is_whole: false, queue_max: 2, parked_max: 4, pending_max: 21, faults: 6, patience_ms: 100, follows_latencies: true, outstanding: 1, ending: WithoutWorkers },
        steps: vec![
            Arrive { app: 0, slack_us: 4682, pinned: Some(1), rows: 1.0 },
            Burst { app: 1, count: 26, slack_us: 27556 },
            Lose { worker: 4 },
            Wait { us: 5860 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}

/// one batch at 18465 us: batch 9 on worker 1: the worker cannot run it
#[test]
#[rustfmt::skip]
fn seed_1000820() {
    let case = SoakCase {
        pool: SoakPool { seed: 1000820, workers: 3, variants: 3, percent: 100, late: [Shed, Serve], second_is_small: false, second_is_whole: true, queue_max: 4, parked_max: 4, pending_max: 4, faults: 5, patience_ms: 100, follows_latencies: true, outstanding: 1, ending: ByFallback },
        steps: vec![
            Down { worker: 4 },
            Arrive { app: 0, slack_us: 2666, pinned: None, rows: 0.25 },
            Arrive { app: 1, slack_us: 8359, pinned: None, rows: 1.0 },
            Arrive { app: 0, slack_us: 24407, pinned: None, rows: 12.0 },
            Arrive { app: 0, slack_us: 14202, pinned: None, rows: 0.25 },
            Arrive { app: 0, slack_us: 4611686018427387904, pinned: None, rows: 35.0 },
            Wait { us: 5795 },
            Wait { us: 1624 },
            Burst { app: 1, count: 18, slack_us: 22919 },
            Wait { us: 5930 },
            Wait { us: 2410 },
            Wait { us: 2706 },
            Lose { worker: 0 },
            Up { worker: 4 },
            Lose { worker: 2 },
        ],
    };
    assert_eq!(case.check(), Ok(()));
}
