//! No request waits for ever, whatever the policy puts first.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::event::{Event, Notice};
use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::policy::FaultKind;
use switchyard_core::request::{Outcome, Rejection};
use switchyard_core::scheduler::OVERTAKEN_MAX;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

use crate::bed::chaos::Useless;
use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::{catalog, request};

const PATIENCE: Micros = Micros::from_millis(1_000);

fn driver(workers: usize) -> Driver {
    Driver::new(catalog(workers), SchedulerConfig::default())
}

/// The kinds of the faults so far.
fn faults(driver: &Driver) -> Vec<FaultKind> {
    let notices = driver.notices.iter();
    let faults = notices.filter_map(|notice| match notice {
        Notice::PolicyFaulted(faulted) => Some(faulted.fault.kind),
        _ => None,
    });
    faults.collect()
}

fn has_room(window: &Window) -> bool {
    window.workers.queued[0] == 0
}

/// Two requests per millisecond, which is twice the capacity of one worker, for some seconds.
fn overload(driver: &mut Driver, seconds: u64, slack_us: impl Fn(u64) -> u64) {
    for id in 10..10 + seconds * 2_000 {
        driver.advance_to(driver.now + Micros(500));
        driver.arrive(request(id, 0, driver.now, slack_us(id)));
    }
}

#[test]
fn a_request_that_is_never_due_does_not_hide_the_starving_ones() {
    let mut driver = driver(1);
    driver.give(Event::PolicyChanged(Box::new(Useless::silent())));
    driver.arrive(request(1, 0, Time::ZERO, 1 << 63));
    driver.arrive(request(2, 0, Time::ZERO, 20_000));
    let due = Time(20_000) + PATIENCE;
    assert_eq!(driver.scheduler.next_wakeup(), Some(due + Micros(1)));
    driver.advance_to(due + Micros(50_000));
    assert_eq!(faults(&driver), [FaultKind::Starved]);
    assert!(driver.replies.contains_key(&RequestId(2)));
}

/// The policy serves the youngest first and keeps its worker busy for ever.
#[test]
fn a_request_that_others_overtake_for_ever_is_served_without_an_idle_worker() {
    let mut driver = driver(1);
    driver.give(install("youngest", |window, plan| {
        if let Some(&id) = window.requests.id.last()
            && has_room(window)
        {
            whole(plan, 0, 0, &[id]);
        }
    }));
    // The first one starts at once, the second one is queued.
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    overload(&mut driver, 2, |_| 20_000);
    let reply = &driver.replies[&RequestId(3)];
    let batch = Micros(1_000);
    let bound = Micros(20_000 + PATIENCE.0 + (u64::from(OVERTAKEN_MAX) + 3) * batch.0);
    assert!(reply.latency <= bound, "{}", reply.latency);
    assert_eq!(reply.decided.as_ref().unwrap().by.as_ref(), "host");
    assert_eq!(faults(&driver), [], "it used its worker");
}

#[test]
fn overload_is_no_fault_and_no_reason_to_overrule_the_policy() {
    let mut driver = driver(1);
    driver.give(install("fcfs", |window, plan| {
        if let Some(&id) = window.requests.id.first()
            && has_room(window)
        {
            whole(plan, 0, 0, &[id]);
        }
    }));
    // Mixed deadlines: first come, first served starts later deadlines before earlier ones.
    overload(&mut driver, 4, |id| 20_000 + id % 7 * 100_000);
    assert_eq!(faults(&driver), []);
    let order: Vec<_> = driver.runs.iter().map(|(_, run)| run.requests[0]).collect();
    assert!(order.is_sorted(), "the host started none");
}

/// The only worker that can hold the model is away; the idle one is too small.
#[test]
fn a_request_that_no_worker_can_run_is_no_fault_and_ends_with_its_reason() {
    let mut small = Arc::unwrap_or_clone(catalog(2));
    small.workers[1].memory_bytes = 10;
    let mut driver = Driver::new(Arc::new(small), SchedulerConfig::default());
    driver.give(Event::PolicyChanged(Box::new(Useless::silent())));
    driver.give(Event::WorkerDown {
        worker: WorkerId(0),
        reason: "unplugged".to_owned(),
    });
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.advance_to(Time(1_020_000));
    assert_eq!((faults(&driver), driver.replies.len()), (vec![], 0));
    driver.advance_to(Time(5_000_000));
    driver.check_empty();
    let rejected = Outcome::Rejected(Rejection::NoWorker);
    assert_eq!(driver.replies[&RequestId(1)].outcome, rejected);
    assert_eq!(faults(&driver), []);
}

/// A parked request can only go on where its activations are.
#[test]
fn a_parked_request_that_starves_goes_on_where_it_is() {
    let mut driver = driver(2);
    driver.give(install("parks", |window, plan| {
        if window.requests.progress.is_empty() {
            for &id in &window.requests.id {
                stages(plan, 1, 1, 0..1, None, &[id]);
            }
        }
    }));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.drain();
    driver.check_empty();
    let (_, last) = driver.runs.last().unwrap();
    assert_eq!((last.worker, last.from_stage), (WorkerId(1), 1));
}
