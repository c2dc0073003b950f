#![allow(clippy::unwrap_used)]

use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::request::{Outcome, Rejection};
use switchyard_core::worker::Decided;
use switchyard_policy::trial;

use super::*;

fn recent() -> Recent {
    Recent::new(Arc::new(trial::catalog()), Time::ZERO)
}

fn reply(outcome: Outcome, latency_ms: u64, by: Option<&str>) -> Reply {
    Reply {
        request: RequestId(1),
        app: AppId(0),
        outcome,
        latency: Micros::from_millis(latency_ms),
        decided: by.map(|by| Decided {
            window: 1,
            by: by.into(),
        }),
        ran: None,
        evidence: None,
    }
}

fn answered(in_time: bool) -> Outcome {
    Outcome::Answered {
        variant: VariantId(0),
        exit: ExitId(0),
        in_time,
    }
}

fn at_ms(ms: u64) -> Time {
    Time(ms * 1_000)
}

const KIND: RunKind = RunKind {
    worker: WorkerId(0),
    variant: VariantId(0),
    stages: (0, 1),
    exit: Some(ExitId(0)),
};

#[test]
fn ends_are_counted_by_app_and_policy_for_five_seconds() {
    let mut recent = recent();
    let shed = Outcome::Rejected(Rejection::Overloaded);
    recent.ended(at_ms(100), &reply(answered(true), 4, Some("a@1")));
    recent.ended(at_ms(700), &reply(answered(false), 40, Some("a@1")));
    recent.ended(at_ms(800), &reply(shed, 0, None));
    recent.ended(at_ms(900), &reply(Outcome::Cancelled, 0, Some("b@1")));
    let report = recent.report(at_ms(1_000));
    assert_eq!((report.from_us, report.covers_us), (0, 1_000_000));
    let app = &report.apps[0];
    let outcomes: Vec<_> = app.outcomes.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let expected = [
        ("cancelled", 1),
        ("in_time", 1),
        ("late", 1),
        ("overloaded", 1),
    ];
    assert_eq!(outcomes, expected);
    let [median, _, p99] = app.latency_us.unwrap();
    assert!((3_700..4_300).contains(&median), "{median}");
    assert!((37_000..43_000).contains(&p99), "{p99}");
    let policy = |policy: &str, ended, in_time| PolicyRecent {
        policy: policy.to_owned(),
        ended,
        in_time,
    };
    assert_eq!(app.policies, [policy("a@1", 2, 1), policy("host", 1, 0)]);
    assert!(app.quality.is_some());
    assert_eq!(report.apps[1].latency_us, None);

    // The first slot has left, the second one has not.
    let report = recent.report(at_ms(5_100));
    assert_eq!(report.covers_us, 4_600_000);
    assert_eq!(report.apps[0].outcomes.get("in_time"), None);
    assert_eq!(report.apps[0].outcomes["late"], 1);
    let report = recent.report(at_ms(3_600_000));
    assert!(report.apps[0].outcomes.is_empty());
    assert_eq!(report.slots, SLOTS);
}

#[test]
fn a_long_batch_keeps_its_worker_busy_in_every_slot_that_it_ran_in() {
    let mut recent = recent();
    recent.ran(at_ms(1_200), KIND, 3, Micros::from_millis(900));
    let report = recent.report(at_ms(1_300));
    let runs = report.workers[0].runs.iter();
    let runs: Vec<_> = runs
        .map(|run| (run.slot, run.batches, run.requests, run.busy_us))
        .collect();
    let expected = [(0, 0, 0, 200_000), (1, 0, 0, 500_000), (2, 1, 3, 200_000)];
    assert_eq!(runs, expected);
    let run = &report.workers[0].runs[0];
    assert!(run.variant.contains('/'), "{run:?}");
    assert!(run.exit.is_some());
    assert!(report.workers[1].runs.is_empty());
    // One that is longer than all slots fills them.
    recent.ran(at_ms(60_000), KIND, 1, Micros::from_millis(59_000));
    let report = recent.report(at_ms(60_000));
    assert_eq!(report.workers[0].runs.len() as u64, SLOTS);
}
