//! Requests that will be late, in apps whose late requests are served last. `switchyard soak` found the
//! defects that these tests are about; its seeds are named.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Late;
use switchyard_core::event::{BatchEnd, Event};
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::request::{Outcome, Rejection, Request};
use switchyard_core::time::{Micros, Time};

use crate::bed::driver::Driver;
use crate::bed::{late_catalog, request};

/// `large` takes 6 ms, so no request with this time can be answered by it in time.
const SHORT_US: u64 = 4_000;

const LARGE: VariantId = VariantId(1);

fn late_pinned(now: Time) -> Request {
    Request {
        pinned: Some(LARGE),
        ..request(1, 0, now, SHORT_US)
    }
}

fn variant_of(driver: &Driver, id: u64) -> Option<VariantId> {
    match driver.replies.get(&RequestId(id))?.outcome {
        Outcome::Answered { variant, .. } => Some(variant),
        _ => None,
    }
}

/// Seed 1.
#[test]
fn a_late_request_is_answered_by_the_variant_that_its_client_pinned() {
    let mut driver = Driver::new(late_catalog(1, Late::Last), SchedulerConfig::default());
    // One that is in time runs first, and two that are late wait behind it.
    driver.arrive(request(2, 0, driver.now, 100_000));
    driver.arrive(request(3, 0, driver.now, 10));
    driver.arrive(Request {
        id: RequestId(4),
        ..late_pinned(driver.now)
    });
    driver.drain();
    assert_eq!(variant_of(&driver, 3), Some(VariantId(0)));
    assert_eq!(variant_of(&driver, 4), Some(LARGE));
    driver.check_empty();
}

/// Seed 514.
#[test]
fn a_late_request_of_a_lost_worker_keeps_its_variant() {
    let mut driver = Driver::new(late_catalog(2, Late::Last), SchedulerConfig::default());
    driver.arrive(late_pinned(driver.now));
    assert_eq!(driver.runs.len(), 1);
    let reason = "unplugged".to_owned();
    driver.finish(driver.runs[0].1.worker, BatchEnd::Lost { reason });
    driver.drain();
    assert_eq!(driver.runs.len(), 2);
    assert_eq!(variant_of(&driver, 1), Some(LARGE));
    driver.check_empty();
}

/// The first idle worker has no memory for the app: the next one serves.
#[test]
fn a_late_request_goes_to_an_idle_worker_that_can_hold_its_variant() {
    let mut catalog = late_catalog(2, Late::Last);
    let changed = Arc::make_mut(&mut catalog);
    changed.workers[0].memory_bytes = 10;
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    driver.arrive(request(1, 0, driver.now, 10));
    driver.drain();
    assert!(variant_of(&driver, 1).is_some(), "{:?}", driver.replies);
    driver.check_empty();
}

/// No other worker can hold the pinned variant.
#[test]
fn a_late_request_whose_only_worker_stays_away_ends_by_the_patience() {
    let mut catalog = late_catalog(2, Late::Last);
    let changed = Arc::make_mut(&mut catalog);
    changed.variants[LARGE.index()].memory_bytes = 2_000;
    changed.workers[1].memory_bytes = 1_500;
    let config = SchedulerConfig::default();
    let patience = config.patience;
    let mut driver = Driver::new(catalog, config);
    driver.give(Event::WorkerDown {
        worker: WorkerId(0),
        reason: "unplugged".to_owned(),
    });
    driver.arrive(late_pinned(driver.now));
    driver.advance_to(Time(SHORT_US) + patience + Micros(1_000));
    let outcome = driver
        .replies
        .get(&RequestId(1))
        .map(|reply| &reply.outcome);
    assert_eq!(outcome, Some(&Outcome::Rejected(Rejection::NoWorker)));
    driver.check_empty();
}

/// `heart` has `large` only, whose first exit takes 2 ms instead of 6 ms.
fn without_exits(late: Late) -> Driver {
    let mut catalog = late_catalog(1, late);
    let changed = Arc::make_mut(&mut catalog);
    changed.workers[0].can.exits = false;
    changed.variants[0].memory_bytes = 20_000;
    Driver::new(catalog, SchedulerConfig::default())
}

#[test]
fn a_worker_without_exits_answers_late_requests_at_the_last_exit() {
    let mut driver = without_exits(Late::Last);
    driver.arrive(request(1, 0, driver.now, 100_000));
    driver.arrive(request(2, 0, driver.now, 10));
    driver.drain();
    let exits: Vec<_> = driver.runs.iter().map(|(_, run)| run.exit).collect();
    assert_eq!(exits, [Some(ExitId(1)); 2]);
    driver.check_empty();
}

#[test]
fn a_deadline_that_only_an_exit_without_a_worker_meets_is_too_short() {
    let mut driver = without_exits(Late::Shed);
    driver.arrive(request(1, 0, driver.now, 100_000));
    driver.arrive(request(2, 0, driver.now, 5_000));
    let rejected = Outcome::Rejected(Rejection::DeadlineTooShort);
    assert_eq!(driver.replies[&RequestId(2)].outcome, rejected);
}
