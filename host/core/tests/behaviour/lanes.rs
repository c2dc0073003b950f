//! Lanes: batches below `min_batch` near a deadline, and workers that go and come back.

use std::sync::{Arc, Mutex};

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Late;
use switchyard_core::event::Event;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Route};
use switchyard_core::time::{Micros, Time};

use crate::bed::driver::Driver;
use crate::bed::script::install;
use crate::bed::{catalog, late_catalog, request};

/// `small` alone takes 1 ms, three requests 1,286 us; its load takes 500 us.
fn routed(workers: u32, min_batch: u32, late: Late) -> Driver {
    let catalog = late_catalog(workers as usize, late);
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    let lane = move |worker| Lane {
        worker: WorkerId(worker),
        variant: VariantId(0),
        exit: ExitId(0),
        weight: 1.0 / f64::from(workers),
        min_batch,
        max_batch: 8,
        capacity: 64,
    };
    driver.give(install("router", move |window, plan| {
        if window.id == 1 {
            plan.routes.push(Route {
                app: AppId(0),
                lanes: (0..workers).map(lane).collect(),
            });
        }
    }));
    driver
}

fn starts(driver: &Driver) -> Vec<(u64, usize)> {
    let runs = driver.runs.iter();
    runs.map(|(at, run)| (at.0, run.requests.len())).collect()
}

#[test]
fn a_lane_that_never_fills_starts_in_time_for_its_deadline() {
    let mut driver = routed(1, 8, Late::Drop);
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    assert!(driver.runs.is_empty());
    let start = 20_000 - 1_286 - 500;
    assert_eq!(driver.scheduler.next_wakeup(), Some(Time(start)));
    driver.drain();
    driver.check_empty();
    assert_eq!(starts(&driver), [(start, 3)]);
}

#[test]
fn a_lane_waits_up_to_the_deadline_where_late_requests_are_the_policys() {
    let mut driver = routed(1, 8, Late::Serve);
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    driver.drain();
    assert_eq!(starts(&driver), [(20_000, 3)]);
}

#[test]
fn a_lane_starts_for_the_earliest_deadline_in_it() {
    let mut driver = routed(1, 8, Late::Drop);
    driver.arrive(request(1, 0, Time::ZERO, 1 << 63));
    driver.arrive(request(2, 0, Time::ZERO, 5_000));
    driver.advance_to(Time(5_000));
    assert_eq!(starts(&driver), [(5_000 - 1_143 - 500, 2)]);
}

#[test]
fn a_late_request_in_a_lane_starts_at_once() {
    let mut driver = routed(1, 8, Late::Serve);
    driver.arrive(request(1, 0, Time::ZERO, 0));
    assert_eq!(starts(&driver), [(0, 1)]);
}

#[test]
fn a_full_batch_does_not_wait_for_the_deadline() {
    let mut driver = routed(1, 8, Late::Drop);
    for id in 1..=8 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    assert_eq!(starts(&driver), [(0, 8)]);
    // The next ones wait again.
    driver.arrive(request(9, 0, Time::ZERO, 90_000));
    driver.advance_to(Time(30_000));
    assert_eq!(driver.runs.len(), 1);
}

#[test]
fn a_drain_starts_lanes_of_any_size() {
    let mut driver = routed(1, 8, Late::Drop);
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 30_000_000));
    }
    driver.give(Event::Drain);
    assert_eq!(starts(&driver), [(0, 3)]);
}

fn lose(driver: &mut Driver, worker: u32) {
    driver.give(Event::WorkerDown {
        worker: WorkerId(worker),
        reason: "unplugged".to_owned(),
    });
}

#[test]
fn a_worker_that_comes_back_has_its_lanes_again() {
    let mut driver = routed(2, 1, Late::Drop);
    lose(&mut driver, 0);
    driver.give(Event::WorkerUp(WorkerId(0)));
    let windows = driver.scheduler.windows_opened();
    for id in 1..=40 {
        driver.arrive(request(id, 0, driver.now, 20_000));
    }
    assert_eq!(driver.scheduler.windows_opened(), windows, "all are routed");
    let mut workers: Vec<_> = driver.runs.iter().map(|(_, run)| run.worker.0).collect();
    workers.sort_unstable();
    assert_eq!(workers, [0, 1]);
    driver.drain();
    driver.check_empty();
}

#[test]
fn the_policy_is_asked_when_a_worker_goes_and_when_it_comes_back() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let mut driver = Driver::new(catalog(2), SchedulerConfig::default());
    driver.give(install("looks", move |window, _| {
        let workers = &window.workers;
        let lives = workers.up.iter().copied().zip(workers.incarnation.clone());
        let seen = (window.because.workers, lives.collect::<Vec<_>>());
        keep.lock().unwrap().push(seen);
    }));
    driver.advance_to(driver.now + Micros(1_000));
    lose(&mut driver, 1);
    driver.give(Event::WorkerUp(WorkerId(1)));
    let seen = seen.lock().unwrap();
    let seen: Vec<_> = seen[1..]
        .iter()
        .map(|(cause, lives)| (*cause, &lives[..]))
        .collect();
    assert_eq!(
        seen,
        [(true, &[(1, 1), (0, 1)][..]), (true, &[(1, 1), (1, 2)][..])]
    );
}
