//! Batches that fail, workers that are lost and come back, and requests without a worker.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Capabilities, Late};
use switchyard_core::event::{BatchEnd, Event, Notice};
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::request::{Outcome, Rejection};
use switchyard_core::time::{Micros, Time};

use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::steps::failed;
use crate::bed::{catalog, late_catalog, request};

const W0: WorkerId = WorkerId(0);

fn driver(workers: usize) -> Driver {
    Driver::new(catalog(workers), SchedulerConfig::default())
}

fn outcome(driver: &Driver, id: u64) -> &Outcome {
    &driver.replies[&RequestId(id)].outcome
}

fn is_answered(driver: &Driver, id: u64) -> bool {
    matches!(outcome(driver, id), Outcome::Answered { .. })
}

/// One worker, one batch of all that is pending once `size` requests are.
fn batches_of(size: usize) -> Event {
    install("batches", move |window, plan| {
        if window.len() >= size {
            let all = window.requests.id.clone();
            whole(plan, 0, 0, &all);
        }
    })
}

fn lost() -> BatchEnd {
    let reason = "unplugged".to_owned();
    BatchEnd::Lost { reason }
}

fn down() -> Event {
    let reason = "unplugged".to_owned();
    Event::WorkerDown { worker: W0, reason }
}

#[test]
fn a_bad_request_fails_no_other_of_its_batch() {
    let mut driver = driver(1);
    driver.give(batches_of(3));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 50_000));
    }
    driver.finish(W0, failed(true));
    for _ in 0..3 {
        let (_, launch) = driver.runs.last().unwrap();
        assert_eq!(launch.requests.len(), 1);
        let is_bad = launch.requests[0] == RequestId(2);
        driver.finish(W0, if is_bad { failed(true) } else { BatchEnd::Done });
    }
    driver.check_empty();
    assert!(is_answered(&driver, 1) && is_answered(&driver, 3));
    assert_eq!(outcome(&driver, 2), &Outcome::Failed("made to".to_owned()));
    assert_eq!(driver.runs.len(), 4);
}

#[test]
fn a_single_request_is_tried_twice_and_a_final_failure_once() {
    for (repeatable, runs) in [(true, 2), (false, 1)] {
        let mut driver = driver(1);
        driver.give(batches_of(1));
        driver.arrive(request(1, 0, Time::ZERO, 50_000));
        for _ in 0..runs {
            driver.finish(W0, failed(repeatable));
        }
        assert_eq!(outcome(&driver, 1), &Outcome::Failed("made to".to_owned()));
        assert_eq!(driver.runs.len(), runs);
        driver.check_empty();
    }
}

#[test]
fn a_request_past_its_deadline_is_not_tried_again() {
    let mut driver = driver(1);
    driver.give(batches_of(1));
    driver.arrive(request(1, 0, Time::ZERO, 500));
    driver.hang(W0);
    driver.advance_to(Time(900));
    driver.finish(W0, failed(true));
    assert_eq!(outcome(&driver, 1), &Outcome::Failed("made to".to_owned()));
    assert_eq!(driver.runs.len(), 1);
}

#[test]
fn the_requests_of_a_lost_batch_run_elsewhere() {
    let mut driver = driver(2);
    driver.give(Event::PolicyRemoved);
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 50_000));
    }
    driver.finish(W0, lost());
    assert!(!driver.scheduler.is_up(W0));
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1) && is_answered(&driver, 2));
}

#[test]
fn a_request_that_takes_its_workers_down_ends_after_three_and_runs_alone_at_last() {
    let mut driver = driver(1);
    driver.give(batches_of(1));
    driver.give(down());
    driver.arrive(request(1, 0, Time::ZERO, 50_000));
    driver.arrive(request(2, 0, Time::ZERO, 50_000));
    for tries in 1..=3 {
        driver.give(Event::WorkerUp(W0));
        let (_, launch) = driver.runs.last().unwrap().clone();
        assert_eq!(driver.runs.len(), tries);
        assert!(launch.requests.contains(&RequestId(1)), "{launch:?}");
        driver.finish(W0, lost());
    }
    // With no second worker the two stayed together: both end, neither hangs.
    assert_eq!(
        outcome(&driver, 1),
        &Outcome::Failed("unplugged".to_owned())
    );
    driver.give(Event::WorkerUp(W0));
    driver.drain();
    driver.check_empty();
}

#[test]
fn while_no_worker_is_up_requests_wait_for_one_as_long_as_it_could_serve_them_in_time() {
    for late in [Late::Shed, Late::Last] {
        let mut driver = Driver::new(late_catalog(1, late), SchedulerConfig::default());
        driver.give(down());
        // The worker answers 8 requests in 2 ms.
        for id in 1..=40 {
            driver.advance_to(Time(id * 1_000));
            driver.arrive(request(id, 0, driver.now, 500_000));
        }
        assert!(driver.replies.is_empty(), "{:?}", driver.replies);
        driver.give(Event::WorkerUp(W0));
        driver.drain();
        driver.check_empty();
        assert!((1..=40).all(|id| is_answered(&driver, id)));
    }
}

#[test]
fn while_no_worker_is_up_more_than_one_could_serve_in_time_is_refused() {
    let mut driver = Driver::new(late_catalog(2, Late::Shed), SchedulerConfig::default());
    driver.give(down());
    driver.give(Event::WorkerDown {
        worker: WorkerId(1),
        reason: "unplugged".to_owned(),
    });
    for id in 1..=100 {
        driver.arrive(request(id, 0, Time::ZERO, 11_000));
    }
    // 10 ms are left when the last batch ends in time: 40 requests.
    let refused = |id| outcome(&driver, id) == &Outcome::Rejected(Rejection::Overloaded);
    let refused =
        (1..=100).filter(|id| driver.replies.contains_key(&RequestId(*id)) && refused(*id));
    let refused = refused.count();
    assert!((55..=62).contains(&refused), "{refused}");
}

#[test]
fn after_two_losses_a_request_runs_alone() {
    let mut driver = driver(3);
    driver.give(install("together", |window, plan| {
        let up = window.workers.up.iter().position(|up| *up == 1);
        if let (2.., Some(worker)) = (window.len(), up) {
            let all = window.requests.id.clone();
            whole(plan, worker as u32, 0, &all);
        }
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 50_000));
    }
    driver.finish(WorkerId(0), lost());
    driver.finish(WorkerId(1), lost());
    let sizes = driver.runs.iter().map(|(_, run)| run.requests.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [2, 2, 1]);
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1) && is_answered(&driver, 2));
}

/// `switchyard soak` found it, seed 1000820: the batch would have parked its request there.
#[test]
fn a_lost_request_runs_whole_on_a_worker_that_parks_nothing() {
    let mut catalog = catalog(2);
    Arc::make_mut(&mut catalog).workers[1].can = Capabilities {
        stage_ranges: false,
        exits: true,
        parking: false,
    };
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    driver.give(install("parks", |window, plan| {
        if window.workers.up[0] == 1 && !window.is_empty() {
            stages(plan, 0, 1, 0..1, None, &window.requests.id);
        }
    }));
    driver.arrive(request(1, 0, Time::ZERO, 50_000));
    driver.finish(W0, lost());
    driver.give(Event::WorkerUp(W0));
    driver.finish(W0, lost());
    let (_, launch) = driver.runs.last().unwrap();
    assert_eq!((driver.runs.len(), launch.worker), (3, WorkerId(1)));
    assert_eq!((launch.to_stage, launch.exit), (3, Some(ExitId(1))));
    driver.drain();
    assert!(is_answered(&driver, 1));
    driver.check_empty();
}

#[test]
fn parked_requests_of_a_lost_worker_start_over() {
    let mut driver = driver(2);
    driver.give(install("slicer", |window, plan| {
        let up = window.workers.up.iter().position(|up| *up == 1);
        for (i, &id) in (0..).zip(&window.requests.id) {
            let parked = window.requests.progress.iter().find(|p| p.index == i);
            match (parked, up) {
                (Some(_), _) if window.workers.up[0] == 1 => {} // Waits.
                (Some(p), _) => stages(plan, p.worker.0, 1, p.stages_run..3, Some(1), &[id]),
                (None, Some(0)) => stages(plan, 0, 1, 0..1, None, &[id]),
                (None, Some(up)) => stages(plan, up as u32, 1, 0..3, Some(1), &[id]),
                (None, None) => {}
            }
        }
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 50_000));
    }
    driver.advance_to(Time(10_000));
    assert!(driver.replies.is_empty(), "they are parked");
    driver.give(down());
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1) && is_answered(&driver, 2));
    let last = driver.runs.last().unwrap();
    assert_eq!((last.1.worker, last.1.from_stage), (WorkerId(1), 0));
}

#[test]
fn a_leaving_worker_ends_its_batch_and_gets_no_other() {
    let mut driver = driver(2);
    driver.give(install("both", |window, plan| {
        let up = window.workers.up.iter().position(|up| *up == 1);
        if let Some(worker) = up {
            for id in window.requests.id.clone() {
                whole(plan, worker as u32, 0, &[id]);
            }
        }
    }));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 50_000));
    }
    driver.give(Event::WorkerLeaving(W0));
    assert!(!driver.scheduler.is_up(W0) && driver.scheduler.is_running(W0));
    // The batch that runs ends here, those that wait go to the other worker.
    driver.drain();
    driver.check_empty();
    assert!((1..=3).all(|id| is_answered(&driver, id)));
    let on: Vec<_> = driver.runs.iter().map(|(_, run)| run.worker.0).collect();
    assert_eq!(on, [0, 1, 1]);
    assert!(!driver.scheduler.is_up(W0), "until it is said to be back");
    driver.give(Event::WorkerUp(W0));
    driver.arrive(request(4, 0, driver.now, 50_000));
    driver.drain();
    assert_eq!(driver.runs.last().unwrap().1.worker, W0);
}

#[test]
fn a_failure_of_a_leaving_worker_is_repeated_elsewhere() {
    for end in [failed(true), lost()] {
        let mut driver = driver(2);
        driver.give(Event::PolicyRemoved);
        for id in 1..=3 {
            driver.arrive(request(id, 0, Time::ZERO, 50_000));
        }
        driver.give(Event::WorkerLeaving(W0));
        driver.finish(W0, end);
        driver.drain();
        driver.check_empty();
        assert!((1..=3).all(|id| is_answered(&driver, id)));
    }
}

#[test]
fn a_leaving_worker_that_begins_anew_or_does_not_end_loses_its_batch() {
    let mut driver = driver(1);
    driver.give(batches_of(1));
    driver.arrive(request(1, 0, Time::ZERO, 60_000_000));
    driver.give(Event::WorkerLeaving(W0));
    driver.give(Event::WorkerUp(W0));
    assert_eq!(driver.runs.len(), 2, "it runs again");
    driver.hang(W0);
    driver.give(Event::WorkerLeaving(W0));
    driver.advance_to(Time(40_000_000));
    assert!(!driver.scheduler.is_running(W0) && !driver.scheduler.is_up(W0));
    driver.give(Event::WorkerUp(W0));
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1));
    assert_eq!(driver.runs.len(), 3);
}

fn overdue_driver() -> Driver {
    let mut driver = driver(2);
    driver.give(install("first", |window, plan| {
        let up = window.workers.up.iter().position(|up| *up == 1);
        if let (1.., Some(worker)) = (window.len(), up) {
            let all = window.requests.id.clone();
            whole(plan, worker as u32, 0, &all);
        }
    }));
    driver.give(Event::Residency {
        worker: W0,
        resident: vec![VariantId(0)],
        free_bytes: 0,
    });
    driver.arrive(request(1, 0, Time::ZERO, 60_000_000));
    driver.hang(W0);
    driver
}

#[test]
fn a_worker_whose_batch_is_overdue_counts_as_lost() {
    let mut driver = overdue_driver();
    let wake = driver.scheduler.next_wakeup().unwrap();
    // 10 times 1 ms and the load of 0.5 ms, and 5 s.
    assert_eq!(wake, Time(5_015_000));
    driver.advance_to(wake);
    assert!(!driver.scheduler.is_up(W0));
    let overdue = driver.notices.iter().any(|notice| {
        matches!(notice, Notice::WorkerOverdue { worker: W0, ran_for, .. }
            if *ran_for == Micros(5_015_000))
    });
    assert!(overdue, "{:?}", driver.notices);
    driver.drain();
    assert!(is_answered(&driver, 1));
    assert_eq!(driver.runs.last().unwrap().1.worker, WorkerId(1));
    assert_eq!(
        driver.scheduler.next_wakeup(),
        None,
        "nothing runs any more"
    );
}

/// A process that was stopped, or a machine that slept: the end of the batch waits in the queue behind
/// the event that wakes the driver.
#[test]
fn a_driver_that_stood_still_gives_batches_time_to_end() {
    let mut driver = overdue_driver();
    driver.sleep(Micros::from_millis(60_000));
    driver.arrive(request(2, 0, Time(60_000_000), 1_000_000));
    assert!(driver.scheduler.is_up(W0), "{:?}", driver.notices);
    driver.advance_to(Time(60_999_999));
    assert!(driver.scheduler.is_up(W0));
    driver.advance_to(Time(61_000_000));
    assert!(!driver.scheduler.is_up(W0), "it hangs all the same");
    driver.drain();
    driver.check_empty();
}

#[test]
fn a_late_end_brings_its_worker_back_and_is_answered_once() {
    let mut driver = overdue_driver();
    driver.advance_to(Time(5_015_000));
    // It runs on the other worker by now.
    driver.finish_late(W0, BatchEnd::Done);
    assert!(driver.scheduler.is_up(W0) && driver.replies.is_empty());
    let recovered = Notice::WorkerRecovered {
        worker: W0,
        batch: driver.runs[0].1.batch,
        ran_for: Micros(5_015_000),
    };
    assert!(driver.notices.contains(&recovered));
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1));
}

#[test]
fn a_late_end_answers_the_requests_that_still_wait() {
    let mut driver = driver(1);
    driver.give(batches_of(1));
    driver.arrive(request(1, 0, Time::ZERO, 60_000_000));
    driver.hang(W0);
    driver.advance_to(Time(31_000_000));
    assert!(!driver.scheduler.is_up(W0) && driver.replies.is_empty());
    driver.finish_late(W0, BatchEnd::Done);
    assert!(is_answered(&driver, 1));
    assert_eq!(driver.runs.len(), 1);
    driver.check_empty();
}

#[test]
fn an_end_of_an_unknown_batch_is_ignored() {
    let mut driver = overdue_driver();
    let batch = driver.runs[0].1.batch;
    driver.advance_to(Time(5_015_000));
    driver.give(Event::WorkerUp(W0));
    let end = BatchEnd::Done;
    let worker = W0;
    driver.give(Event::Finished { worker, batch, end });
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1));
}

#[test]
fn without_a_worker_requests_end_after_deadline_and_patience() {
    let mut driver = driver(1);
    driver.give(down());
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    let mut pinned = request(2, 0, Time::ZERO, 30_000);
    pinned.pinned = Some(VariantId(1));
    driver.arrive(pinned);
    let first = driver.scheduler.next_wakeup().unwrap();
    assert_eq!(
        first,
        Time(20_000) + SchedulerConfig::default().patience + Micros(1)
    );
    driver.advance_to(first);
    let no_worker = Outcome::Rejected(Rejection::NoWorker);
    assert_eq!(outcome(&driver, 1), &no_worker);
    assert_eq!(driver.replies.len(), 1);
    driver.drain();
    assert_eq!(outcome(&driver, 2), &no_worker);
    driver.check_empty();
}

#[test]
fn pinned_requests_wait_for_the_worker_that_comes_back() {
    let mut driver = driver(1);
    let pinned = |id| switchyard_core::request::Request {
        pinned: Some(VariantId(1)),
        ..request(id, 0, Time::ZERO, 50_000)
    };
    driver.arrive(pinned(1));
    driver.give(down());
    driver.arrive(pinned(2));
    driver.arrive(pinned(3));
    driver.give(Event::Cancelled(RequestId(3)));
    driver.give(Event::WorkerUp(W0));
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 1) && is_answered(&driver, 2));
}
