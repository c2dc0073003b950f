//! Requests that take several times as long as others.

use std::sync::{Arc, Mutex};

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Capabilities, Late};
use switchyard_core::cost::Cost;
use switchyard_core::event::{Event, Notice};
use switchyard_core::ids::{ExitId, RequestId};
use switchyard_core::request::{Outcome, Rejection, Request};
use switchyard_core::time::Time;
use switchyard_core::window::IDLE;

use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::{late_catalog, request};

/// `small` takes 1 ms alone and 1 / 7 ms for each further row; `large` takes 6 ms and 6 / 7 ms.
fn driver() -> Driver {
    Driver::new(late_catalog(1, Late::Shed), SchedulerConfig::default())
}

fn costly(id: u64, now: Time, slack_us: u64, rows: f64) -> Request {
    Request {
        cost: Cost::from_f64(rows),
        ..request(id, 0, now, slack_us)
    }
}

fn in_time(driver: &Driver, id: u64) -> bool {
    let reply = driver.replies.get(&RequestId(id));
    reply.is_some_and(|reply| matches!(reply.outcome, Outcome::Answered { in_time: true, .. }))
}

#[test]
fn a_batch_is_expected_to_take_what_its_requests_cost() {
    let mut driver = driver();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    driver.give(install("small", move |window, plan| {
        let running = window.workers.running_variant[0] != IDLE;
        let costs = window.requests.costs.iter().map(|cost| cost.cost.as_f64());
        let busy = window.workers.busy_until[0];
        if window.is_empty() {
            return;
        }
        shown
            .lock()
            .unwrap()
            .push((running.then_some(busy), costs.collect::<Vec<_>>()));
        if let (false, Some(&id)) = (running, window.requests.id.first()) {
            whole(plan, 0, 0, &[id]);
        }
    }));
    driver.arrive(costly(1, Time::ZERO, 50_000, 15.0));
    driver.arrive(costly(2, Time::ZERO, 50_000, 0.5));
    driver.arrive(request(3, 0, Time::ZERO, 50_000));
    driver.drain();
    driver.check_empty();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], (None, vec![15.0]));
    // A load, and seven rows more than the largest batch of the profile, which has eight.
    let (busy_until, costs) = &seen[2];
    assert_eq!(busy_until, &Some(500 + 2_000 + 7 * 143));
    assert_eq!(costs, &[0.5], "a cost of 1 is not listed");
}

#[test]
fn a_request_that_takes_longer_than_its_deadline_allows_is_refused() {
    let mut driver = driver();
    driver.arrive(costly(1, Time::ZERO, 20_000, 1.0));
    driver.arrive(costly(2, Time::ZERO, 20_000, 200.0));
    driver.drain();
    assert!(in_time(&driver, 1));
    let refused = Outcome::Rejected(Rejection::DeadlineTooShort);
    assert_eq!(driver.replies[&RequestId(2)].outcome, refused);
}

#[test]
fn the_rows_that_a_costly_one_would_make_late_leave_its_batch() {
    let mut driver = driver();
    driver.give(install("all", |window, plan| {
        if window.workers.running_variant[0] == IDLE && window.len() == 4 {
            whole(plan, 0, 0, &window.requests.id);
        }
    }));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 4_000));
    }
    driver.arrive(costly(4, Time::ZERO, 100_000, 30.0));
    driver.drain();
    let sizes: Vec<_> = driver
        .runs
        .iter()
        .map(|(_, run)| run.requests.len())
        .collect();
    assert_eq!(
        sizes[0], 1,
        "the costly one alone is in time with a batch of four"
    );
    assert!(in_time(&driver, 4));
    driver.check_empty();
}

/// Shorts come every two milliseconds; a long request takes 25 ms, three times as long as the
/// shorts can wait.
#[test]
fn short_requests_run_between_the_stages_of_a_long_one() {
    let mut driver = driver();
    let long = 500;
    for i in 0..300 {
        driver.advance_to(Time(i * 2_000));
        if i == 100 {
            driver.arrive(costly(long, driver.now, 200_000, 24.0));
        }
        let id = if i < 100 { i + 1 } else { i + 1_000 };
        driver.arrive(request(id, 0, driver.now, 16_000));
    }
    driver.drain();
    driver.check_empty();
    assert!(in_time(&driver, long));
    for (id, reply) in &driver.replies {
        assert!(in_time(&driver, id.0), "{reply:?}");
    }
    let runs = driver
        .runs
        .iter()
        .filter(|(_, run)| run.requests.contains(&RequestId(long)));
    let runs: Vec<_> = runs
        .map(|(at, run)| (at.0, run.from_stage, run.exit))
        .collect();
    let stages: Vec<_> = runs.iter().map(|&(_, from, exit)| (from, exit)).collect();
    assert_eq!(stages, [(0, None), (1, None), (2, Some(ExitId(1)))]);
    // A stage takes 8.6 ms.
    let apart = runs.windows(2).all(|pair| pair[1].0 - pair[0].0 > 10_000);
    assert!(apart, "others run between its stages: {runs:?}");
}

/// Nothing else comes, so nothing is gained by stopping between stages.
#[test]
fn a_long_request_alone_runs_at_once_and_whole() {
    let mut driver = driver();
    driver.arrive(costly(1, Time::ZERO, 200_000, 24.0));
    driver.drain();
    let [(at, run)] = driver.runs.as_slice() else {
        panic!("{:?}", driver.runs);
    };
    assert_eq!((at.0, run.from_stage, run.to_stage), (0, 0, 3));
    assert!(in_time(&driver, 1));
}

/// Serves short requests at a rate at which others come during a long one.
fn serve_shorts(driver: &mut Driver) {
    for id in 1..=100 {
        driver.advance_to(Time(id * 2_000));
        driver.arrive(request(id, 0, driver.now, 16_000));
    }
    driver.drain();
}

/// Lets a long request arrive; the fallback must serve it with plans that keep the rules.
fn serve_long(driver: &mut Driver) {
    let long = 500;
    driver.arrive(costly(long, driver.now, 200_000, 24.0));
    driver.drain();
    driver.check_empty();
    assert!(in_time(driver, long));
    let mut notices = driver.notices.iter();
    let faulted = notices.find(|notice| matches!(notice, Notice::PolicyFaulted(_)));
    assert_eq!(faulted, None);
}

#[test]
fn a_long_request_is_not_parked_behind_a_batch_that_takes_the_room() {
    let mut driver = driver();
    serve_shorts(&mut driver);
    driver.give(install("parks", |window, plan| {
        // As many as the worker may park.
        if window.len() == 6 {
            stages(plan, 0, 1, 0..1, None, &window.requests.id);
        }
    }));
    for id in 201..=206 {
        driver.arrive(request(id, 0, driver.now, 200_000));
    }
    driver.give(Event::PolicyRemoved);
    let (_, parking) = driver.runs.last().unwrap();
    assert_eq!((parking.exit, parking.requests.len()), (None, 6));
    serve_long(&mut driver);
}

#[test]
fn a_long_request_is_not_parked_on_a_worker_that_parks_none() {
    let mut catalog = late_catalog(1, Late::Shed);
    Arc::make_mut(&mut catalog).workers[0].can = Capabilities {
        stage_ranges: false,
        parking: false,
        ..Capabilities::ALL
    };
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    serve_shorts(&mut driver);
    serve_long(&mut driver);
}

#[test]
fn a_long_request_never_shares_a_batch() {
    let mut driver = driver();
    driver.give(Event::PolicyRemoved);
    driver.arrive(request(1, 0, Time::ZERO, 50_000));
    for id in 2..=5 {
        driver.arrive(costly(
            id,
            Time::ZERO,
            400_000,
            if id % 2 == 0 { 9.0 } else { 2.0 },
        ));
    }
    driver.drain();
    for (_, run) in &driver.runs {
        let long = run
            .requests
            .iter()
            .filter(|id| [2, 4].contains(&id.0))
            .count();
        assert!(long == 0 || run.requests.len() == 1, "{run:?}");
    }
    assert!((1..=5).all(|id| in_time(&driver, id)));
}
