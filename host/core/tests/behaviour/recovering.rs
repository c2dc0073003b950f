//! Workers that serve again after the end of an overdue batch, while other overdue batches have not ended.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, Late};
use switchyard_core::event::{BatchEnd, Event, Notice};
use switchyard_core::ids::{BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::Plan;
use switchyard_core::request::{Outcome, Rejection};
use switchyard_core::time::Time;
use switchyard_core::window::Window;

use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::{catalog, late_catalog, request};

const W0: WorkerId = WorkerId(0);

/// Workers with two places, which hold the small and the large variant.
fn driver_of(mut catalog: Arc<Catalog>) -> Driver {
    for worker in &mut Arc::make_mut(&mut catalog).workers {
        worker.outstanding = 2;
    }
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    driver.give(Event::Residency {
        worker: W0,
        resident: vec![VariantId(0), VariantId(1)],
        free_bytes: 0,
    });
    driver
}

fn is_answered(driver: &Driver, id: u64) -> bool {
    let reply = driver.replies.get(&RequestId(id));
    reply.is_some_and(|reply| matches!(reply.outcome, Outcome::Answered { .. }))
}

/// The batches for which a worker counted as lost.
fn overdue(driver: &Driver) -> Vec<BatchId> {
    let overdue = driver.notices.iter().filter_map(|notice| match *notice {
        Notice::WorkerOverdue { batch, .. } => Some(batch),
        _ => None,
    });
    overdue.collect()
}

fn busy_until(driver: &mut Driver) -> Time {
    let mut window = Window::default();
    let now = driver.now;
    driver.scheduler.look(now, Default::default(), &mut window);
    Time(window.workers.busy_until[0])
}

#[test]
fn a_batch_behind_an_overdue_one_is_not_overdue_before_it_begins() {
    let mut driver = driver_of(catalog(1));
    driver.give(install("one by one", |window, plan| {
        for &id in &window.requests.id {
            if window.workers.up[0] == 1 {
                whole(plan, 0, 0, &[id]);
            }
        }
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 60_000_000));
    }
    // Each batch takes 6 s, so the first is overdue after 5.015 s.
    driver.hang(W0);
    driver.advance_to(Time(6_000_000));
    assert_eq!(overdue(&driver), [driver.runs[0].1.batch]);
    driver.finish_late(W0, BatchEnd::Done);
    assert_eq!(driver.runs.len(), 3, "request 2 is sent again");
    driver.hang(W0);
    driver.advance_to(Time(12_000_000));
    assert_eq!(overdue(&driver).len(), 1, "{:?}", driver.notices);
    driver.finish_late(W0, BatchEnd::Done);
    // From here on only its own time counts.
    driver.advance_to(Time(17_000_000));
    assert_eq!(overdue(&driver).len(), 1);
    driver.advance_to(Time(17_020_000));
    assert_eq!(overdue(&driver)[1..], [driver.runs[2].1.batch]);
    driver.finish_late(W0, BatchEnd::Done);
    driver.drain();
    driver.check_empty();
    assert!((1..=2).all(|id| is_answered(&driver, id)));
}

#[test]
fn a_worker_whose_overdue_batches_never_end_is_lost_again() {
    let mut driver = driver_of(catalog(1));
    driver.give(install("one by one", |window, plan| {
        for &id in &window.requests.id {
            if window.workers.up[0] == 1 {
                whole(plan, 0, 0, &[id]);
            }
        }
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 60_000_000));
    }
    driver.hang(W0);
    driver.advance_to(Time(6_000_000));
    driver.finish_late(W0, BatchEnd::Done);
    driver.hang(W0);
    // The times of both batches together.
    driver.advance_to(Time(16_019_000));
    assert!(driver.scheduler.is_up(W0));
    driver.advance_to(Time(16_030_000));
    assert!(!driver.scheduler.is_up(W0));
}

#[test]
fn the_times_of_overdue_batches_count_while_their_worker_serves() {
    let mut driver = driver_of(late_catalog(1, Late::Shed));
    driver.give(install("large", |window, plan| {
        for &id in &window.requests.id {
            match id {
                ..=2 if window.workers.up[0] == 0 => {}
                ..=2 => stages(plan, 0, 1, 0..3, Some(1), &[id]),
                _ => whole(plan, 0, 0, &[id]),
            }
        }
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 60_000_000));
    }
    driver.hang(W0);
    driver.advance_to(Time(6_000_000));
    assert_eq!(busy_until(&mut driver), driver.now, "it is lost");
    driver.give(Event::Cancelled(RequestId(2)));
    driver.finish_late(W0, BatchEnd::Done);
    // The second batch begins now and takes 6 ms, a small one behind it 1 ms.
    assert_eq!(busy_until(&mut driver), Time(6_006_000));
    driver.arrive(request(3, 0, driver.now, 6_500));
    let overloaded = Outcome::Rejected(Rejection::Overloaded);
    assert_eq!(driver.replies[&RequestId(3)].outcome, overloaded);
    driver.arrive(request(4, 0, driver.now, 7_500));
    assert_eq!(driver.runs.last().unwrap().1.requests[..], [RequestId(4)]);
    assert_eq!(busy_until(&mut driver), Time(6_007_000));
    // The overdue batch takes longer, and the small one runs behind it.
    driver.hang(W0);
    driver.advance_to(Time(6_050_000));
    assert_eq!(busy_until(&mut driver), Time(6_051_000));
    driver.finish_late(W0, BatchEnd::Done);
    driver.finish(W0, BatchEnd::Done);
    assert_eq!(busy_until(&mut driver), driver.now);
    driver.check_empty();
}

/// Runs the first stage of the large variant, and from `go_on` the others.
fn slice(window: &Window, plan: &mut Plan, go_on: Time) {
    if window.workers.up[0] == 0 {
        return;
    }
    for (index, &id) in (0..).zip(&window.requests.id) {
        let parked = window.requests.progress.iter().any(|p| p.index == index);
        match parked {
            false => stages(plan, 0, 1, 0..1, None, &[id]),
            true if window.now >= go_on => stages(plan, 0, 1, 1..3, Some(1), &[id]),
            true => {}
        }
    }
}

/// Request 2 waits for its other stages after a second try of its first one, and the batch of the first
/// try is still to end.
fn parked_twice(go_on: Time) -> Driver {
    let mut driver = driver_of(catalog(1));
    driver.give(install("slices", move |window, plan| {
        slice(window, plan, go_on);
    }));
    for id in 1..=2 {
        driver.arrive(request(id, 0, Time::ZERO, 60_000_000));
    }
    driver.hang(W0);
    driver.advance_to(Time(6_000_000));
    driver.give(Event::Cancelled(RequestId(1)));
    driver.finish_late(W0, BatchEnd::Done);
    assert_eq!(driver.runs.len(), 3, "request 2 begins again");
    driver
}

#[test]
fn a_request_parked_by_two_tries_starts_over_when_the_first_ends_last() {
    let mut driver = parked_twice(Time(7_000_000));
    driver.advance_to(Time(6_500_000));
    driver.finish_late(W0, BatchEnd::Done);
    // Asks the policy, which goes on with the parked request.
    driver.advance_to(Time(7_000_000));
    driver.arrive(request(3, 0, driver.now, 60_000_000));
    driver.drain();
    driver.check_empty();
    assert!((2..=3).all(|id| is_answered(&driver, id)));
    let of_2 = driver.runs.iter().filter(|(_, run)| run.requests[0].0 == 2);
    let from: Vec<_> = of_2.map(|(_, run)| run.from_stage).collect();
    assert_eq!(from, [0, 0, 0, 1]);
}

#[test]
fn a_queued_request_parked_by_two_tries_starts_over_when_the_first_ends_last() {
    let mut driver = parked_twice(Time::ZERO);
    // Takes the place when the second try has parked request 2.
    driver.arrive(request(3, 0, driver.now, 60_000_000));
    driver.advance_to(Time(6_002_000));
    assert_eq!(driver.runs.last().unwrap().1.requests[..], [RequestId(3)]);
    driver.hang(W0);
    driver.finish_late(W0, BatchEnd::Done);
    driver.finish(W0, BatchEnd::Done);
    driver.drain();
    driver.check_empty();
    assert!((2..=3).all(|id| is_answered(&driver, id)));
    let of_2 = driver.runs.iter().filter(|(_, run)| run.requests[0].0 == 2);
    let from: Vec<_> = of_2.map(|(_, run)| run.from_stage).collect();
    assert_eq!(from, [0, 0, 0, 1]);
}

#[test]
fn a_request_that_runs_its_other_stages_is_left_alone_when_an_earlier_try_ends() {
    let mut driver = parked_twice(Time::ZERO);
    driver.advance_to(Time(6_002_000));
    assert_eq!(driver.runs.last().unwrap().1.from_stage, 1);
    driver.finish_late(W0, BatchEnd::Done);
    driver.drain();
    driver.check_empty();
    assert!(is_answered(&driver, 2));
    assert_eq!(driver.runs.len(), 4);
}

/// Its batch may still end, and reads them.
#[test]
fn a_leaving_worker_keeps_the_activations_of_a_running_batch() {
    for to_stage in [2, 3] {
        let mut driver = driver_of(catalog(2));
        driver.give(install("slices", move |window, plan| {
            let up = window.workers.up.iter().position(|up| *up == 1);
            let Some(worker) = up.map(|worker| worker as u32) else {
                return;
            };
            for (index, &id) in (0..).zip(&window.requests.id) {
                let exit = (to_stage == 3).then_some(1);
                match window.requests.progress.iter().find(|p| p.index == index) {
                    None if worker > 0 => stages(plan, worker, 1, 0..3, Some(1), &[id]),
                    None => stages(plan, 0, 1, 0..1, None, &[id]),
                    Some(_) => stages(plan, 0, 1, 1..to_stage, exit, &[id]),
                }
            }
        }));
        driver.arrive(request(1, 0, Time::ZERO, 50_000));
        driver.advance_to(Time(3_000));
        assert_eq!(driver.runs.last().unwrap().1.from_stage, 1);
        driver.give(Event::WorkerLeaving(W0));
        let releases = |driver: &Driver| {
            let log = driver.log.iter();
            log.filter(|line| line.contains("Release")).count()
        };
        assert_eq!(releases(&driver), 0);
        driver.drain();
        driver.check_empty();
        assert!(is_answered(&driver, 1));
        // Stage 2 parked the request: it starts over on the other worker.
        let (runs, released) = if to_stage == 3 { (2, 0) } else { (3, 1) };
        assert_eq!((driver.runs.len(), releases(&driver)), (runs, released));
        let mut window = Window::default();
        let now = driver.now;
        driver.scheduler.look(now, Default::default(), &mut window);
        assert_eq!(window.workers.parked, [0, 0]);
    }
}

/// The policy goes on with no parked request, and the host answers it while that is in time.
#[test]
fn a_pending_request_that_loses_its_progress_is_guarded_again() {
    for late in [Late::Shed, Late::Last] {
        for loss in ["down", "leaving", "overdue"] {
            let mut driver = driver_of(late_catalog(2, late));
            driver.give(install("parks", |window, plan| {
                slice(window, plan, Time::NEVER);
            }));
            driver.arrive(request(1, 0, Time::ZERO, 6_000_000));
            driver.advance_to(Time(3_000));
            match loss {
                "down" => driver.give(Event::WorkerDown {
                    worker: W0,
                    reason: "unplugged".to_owned(),
                }),
                "leaving" => driver.give(Event::WorkerLeaving(W0)),
                _ => {
                    driver.arrive(request(2, 0, driver.now, 6_000_000));
                    driver.hang(W0);
                }
            }
            driver.advance_to(Time(6_000_000));
            assert!(!driver.scheduler.is_up(W0));
            let reply = driver
                .replies
                .get(&RequestId(1))
                .map(|reply| &reply.outcome);
            let is_in_time = matches!(reply, Some(Outcome::Answered { in_time: true, .. }));
            assert!(is_in_time, "{loss}, {late:?}: {reply:?}");
        }
    }
}
