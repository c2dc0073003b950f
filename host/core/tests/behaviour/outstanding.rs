//! Workers that are sent a batch before the one that they run has ended.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, Late};
use switchyard_core::event::{BatchEnd, Event, Notice};
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, Window};

use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::steps::failed;
use crate::bed::{catalog, late_catalog, request};

const W0: WorkerId = WorkerId(0);

fn with_outstanding(mut catalog: Arc<Catalog>, outstanding: u32) -> Driver {
    for worker in &mut Arc::make_mut(&mut catalog).workers {
        worker.outstanding = outstanding;
    }
    Driver::new(catalog, SchedulerConfig::default())
}

/// Each request alone on the first worker, at the end of its queue.
fn one_by_one() -> Event {
    install("one by one", |window, plan| {
        let up = window.workers.up.iter().position(|up| *up == 1);
        for &id in &window.requests.id {
            if let Some(worker) = up {
                whole(plan, worker as u32, 0, &[id]);
            }
        }
    })
}

fn starts(driver: &Driver) -> Vec<u64> {
    driver.runs.iter().map(|(at, _)| at.0).collect()
}

fn answered_at(driver: &Driver, id: u64) -> Option<Micros> {
    let reply = driver.replies.get(&RequestId(id))?;
    matches!(reply.outcome, Outcome::Answered { .. }).then_some(reply.latency)
}

/// Requests 1 to `count` at 0 us, each a batch of 1 ms.
fn driver_with(workers: usize, outstanding: u32, count: u64) -> Driver {
    let mut driver = with_outstanding(catalog(workers), outstanding);
    driver.give(one_by_one());
    for id in 1..=count {
        driver.arrive(request(id, 0, Time::ZERO, 60_000_000));
    }
    driver
}

#[test]
fn batches_are_sent_up_to_the_bound_and_timed_from_the_end_of_the_one_before() {
    for (outstanding, sent) in [
        (1, [0, 1_000, 2_000, 3_000]),
        (2, [0, 0, 1_000, 2_000]),
        (3, [0, 0, 0, 1_000]),
    ] {
        let mut driver = driver_with(1, outstanding, 4);
        driver.drain();
        assert_eq!(starts(&driver), sent);
        let ends = (1..=4).map(|id| answered_at(&driver, id).unwrap().0);
        assert_eq!(ends.collect::<Vec<_>>(), [1_000, 2_000, 3_000, 4_000]);
        let ran = driver
            .replies
            .values()
            .map(|reply| reply.ran.unwrap().since.0);
        assert_eq!(ran.collect::<Vec<_>>(), [0, 1_000, 2_000, 3_000]);
        driver.check_empty();
    }
}

#[test]
fn a_worker_with_a_place_is_shown_as_idle_and_busy_until_its_last_batch_ends() {
    let mut driver = driver_with(1, 2, 0);
    driver.give(Event::Residency {
        worker: W0,
        resident: vec![VariantId(0)],
        free_bytes: 0,
    });
    let (seen, columns) = std::sync::mpsc::channel();
    driver.give(install("watch", move |window, plan| {
        let workers = &window.workers;
        let _ = seen.send((workers.running_variant[0], workers.busy_until[0]));
        for &id in &window.requests.id {
            whole(plan, 0, 0, &[id]);
        }
    }));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 50_000));
    }
    let columns: Vec<_> = columns.try_iter().collect();
    // The first window opens for the new policy.
    assert_eq!(columns, [(IDLE, 0), (IDLE, 0), (IDLE, 1_000), (0, 2_000)]);
}

#[test]
fn the_times_of_a_slow_worker_are_those_of_its_batches_alone() {
    let config = SchedulerConfig {
        follows_latencies: true,
        ..SchedulerConfig::default()
    };
    let mut slow = catalog(1);
    Arc::make_mut(&mut slow).workers[0].outstanding = 3;
    let mut driver = Driver::new(slow, config);
    driver.give(Event::Residency {
        worker: W0,
        resident: vec![VariantId(0)],
        free_bytes: 0,
    });
    driver.slowdown = |_| 2.0;
    driver.give(one_by_one());
    for id in 1..=40 {
        driver.arrive(request(id, 0, driver.now, 60_000_000));
        driver.advance_to(driver.now + Micros(1_900));
    }
    let mut window = Window::default();
    driver
        .scheduler
        .look(driver.now, Default::default(), &mut window);
    let slowdown = window.slowdown[0].ratio();
    assert!((slowdown - 2.0).abs() < 0.2, "{slowdown}");
}

#[test]
fn a_batch_that_overtakes_leaves_the_others() {
    let mut driver = driver_with(1, 3, 4);
    driver.overtake(W0);
    assert_eq!(answered_at(&driver, 3), Some(Micros::ZERO));
    assert_eq!(starts(&driver), [0; 4], "its place was used at once");
    driver.drain();
    driver.check_empty();
    assert_eq!(answered_at(&driver, 1), Some(Micros(1_000)));
    assert_eq!(driver.runs.len(), 4);
}

#[test]
fn a_failed_batch_leaves_those_behind_it() {
    let mut driver = driver_with(1, 2, 3);
    driver.finish(W0, failed(false));
    assert!(matches!(
        driver.replies[&RequestId(1)].outcome,
        Outcome::Failed(_)
    ));
    driver.drain();
    driver.check_empty();
    assert!((2..=3).all(|id| answered_at(&driver, id).is_some()));
    assert_eq!(driver.runs.len(), 3);
}

#[test]
fn a_lost_worker_loses_all_that_it_was_sent_and_each_request_is_answered_once() {
    let ends = [
        Event::WorkerDown {
            worker: W0,
            reason: "unplugged".to_owned(),
        },
        Event::WorkerUp(W0),
    ];
    for end in ends {
        let mut driver = driver_with(2, 2, 3);
        let is_restart = matches!(end, Event::WorkerUp(_));
        if is_restart {
            driver.give(Event::WorkerLeaving(W0));
        }
        driver.give(end);
        driver.drain();
        driver.check_empty();
        assert!((1..=3).all(|id| answered_at(&driver, id).is_some()));
        let again = driver.runs.iter().skip(2).map(|(_, run)| run.requests[0]);
        let mut again: Vec<_> = again.collect();
        again.sort_unstable();
        assert_eq!(again, [RequestId(1), RequestId(2), RequestId(3)]);
    }
}

#[test]
fn the_second_batch_that_reports_the_loss_loses_all() {
    let mut driver = driver_with(2, 2, 2);
    let batch = driver.runs[1].1.batch;
    let reason = "unplugged".to_owned();
    driver.give(Event::Finished {
        worker: W0,
        batch,
        end: BatchEnd::Lost { reason },
    });
    assert!(!driver.scheduler.is_up(W0) && !driver.scheduler.is_running(W0));
    driver.drain();
    driver.check_empty();
    assert_eq!(driver.runs.len(), 4);
}

#[test]
fn a_leaving_worker_ends_all_that_it_was_sent() {
    let mut driver = driver_with(2, 2, 3);
    driver.give(Event::WorkerLeaving(W0));
    driver.finish(W0, BatchEnd::Done);
    assert!(driver.scheduler.is_running(W0), "the second batch");
    driver.drain();
    driver.check_empty();
    let on: Vec<_> = driver.runs.iter().map(|(_, run)| run.worker.0).collect();
    assert_eq!(on, [0, 0, 1]);
    assert!(!driver.scheduler.is_running(W0));
}

#[test]
fn only_the_running_batch_can_be_overdue_and_those_behind_it_run_elsewhere() {
    let mut driver = driver_with(2, 2, 2);
    driver.hang(W0);
    let batch = driver.runs[0].1.batch;
    driver.advance_to(Time(36_000_000));
    let is_it = |notice: &Notice| matches!(notice, Notice::WorkerOverdue { worker: W0, batch: late, .. } if *late == batch);
    assert!(driver.notices.iter().any(is_it), "{:?}", driver.notices);
    driver.drain();
    assert_eq!(driver.runs.len(), 4);
    assert!((1..=2).all(|id| answered_at(&driver, id).is_some()));
    // Both of its batches end after all, the worker serves again, and no request is answered twice.
    driver.finish_late(W0, BatchEnd::Done);
    assert!(driver.scheduler.is_up(W0));
    driver.finish_late(W0, BatchEnd::Done);
    driver.check_empty();
    driver.arrive(request(3, 0, driver.now, 50_000));
    driver.drain();
    assert_eq!(driver.runs.last().unwrap().1.worker, W0);
}

#[test]
fn a_batch_behind_an_overdue_one_keeps_its_place_on_the_worker_that_serves_again() {
    let mut driver = driver_with(1, 2, 2);
    driver.hang(W0);
    driver.advance_to(Time(36_000_000));
    driver.finish_late(W0, BatchEnd::Done);
    assert!(driver.scheduler.is_up(W0));
    // The second batch is still there: one of these two waits for its end.
    driver.arrive(request(3, 0, driver.now, 60_000_000));
    driver.arrive(request(4, 0, driver.now, 60_000_000));
    let sent = driver.runs.len();
    assert_eq!(sent, 3);
    driver.finish_late(W0, BatchEnd::Done);
    assert_eq!(driver.runs.len(), sent + 1);
    driver.drain();
    driver.check_empty();
}

#[test]
fn activations_of_a_sent_batch_that_ends_after_the_loss_are_released() {
    let mut driver = with_outstanding(catalog(1), 2);
    driver.give(install("parks", |window, plan| {
        if window.workers.up[0] == 1 {
            for (index, &id) in (0..).zip(&window.requests.id) {
                let parked = window.requests.progress.iter().find(|p| p.index == index);
                match parked {
                    None => stages(plan, 0, 1, 0..1, None, &[id]),
                    Some(_) => stages(plan, 0, 1, 1..3, Some(1), &[id]),
                }
            }
        }
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 60_000_000));
    }
    driver.hang(W0);
    driver.advance_to(Time(40_000_000));
    assert!(!driver.scheduler.is_up(W0));
    driver.finish_late(W0, BatchEnd::Done);
    driver.finish_late(W0, BatchEnd::Done);
    driver.drain();
    driver.check_empty();
    assert!((1..=2).all(|id| answered_at(&driver, id).is_some()));
}

#[test]
fn rows_that_would_be_late_behind_the_running_batch_leave_before_they_are_sent() {
    let mut driver = with_outstanding(late_catalog(1, Late::Shed), 2);
    driver.give(Event::Residency {
        worker: W0,
        resident: vec![VariantId(0), VariantId(1)],
        free_bytes: 0,
    });
    driver.give(install("large first", |window, plan| {
        for &id in &window.requests.id {
            match id {
                1 => stages(plan, 0, 1, 0..3, Some(1), &[id]),
                _ => whole(plan, 0, 0, &[id]),
            }
        }
    }));
    // 6 ms, then 1 ms: the second request has 6.5 ms, the third 8 ms.
    driver.arrive(request(1, 0, Time::ZERO, 50_000));
    driver.arrive(request(2, 0, Time::ZERO, 6_500));
    driver.arrive(request(3, 0, Time::ZERO, 8_000));
    driver.drain();
    driver.check_empty();
    assert_eq!(answered_at(&driver, 2), None, "it could not be in time");
    assert_eq!(answered_at(&driver, 3), Some(Micros(7_000)));
}

#[test]
fn a_policy_that_leaves_a_place_unused_is_not_charged_while_the_worker_runs() {
    let mut driver = with_outstanding(late_catalog(1, Late::Shed), 2);
    driver.give(install("one at a time", |window, plan| {
        let is_busy = window.workers.busy_until[0] > window.now.0;
        if let (false, Some(&id)) = (is_busy, window.requests.id.first()) {
            whole(plan, 0, 0, &[id]);
        }
    }));
    for id in 1..=8 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    driver.drain();
    driver.check_empty();
    let faults = driver.notices.iter();
    let faults = faults.filter(|notice| matches!(notice, Notice::PolicyFaulted(_)));
    assert_eq!(faults.count(), 0, "{:?}", driver.notices);
    assert!((1..=8).all(|id| answered_at(&driver, id).is_some()));
}
