//! Requests whose client pinned the variant: the host starts them, in turns with the policy.

use switchyard_core::SchedulerConfig;
use switchyard_core::event::Event;
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::request::{Outcome, Rejection, Request};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, Window};

use crate::bed::driver::Driver;
use crate::bed::script::{install, whole};
use crate::bed::{catalog, request};

/// `large` takes 6 ms alone and 12 ms in a batch of 8.
const LARGE: VariantId = VariantId(1);

fn pinned(id: u64, now: Time, slack_us: u64) -> Request {
    Request {
        pinned: Some(LARGE),
        ..request(id, 0, now, slack_us)
    }
}

fn is_idle(window: &Window) -> bool {
    window.workers.running_variant[0] == IDLE && window.workers.queued[0] == 0
}

/// First come, first served on one worker when it is idle.
fn fcfs() -> Event {
    install("fcfs", |window, plan| {
        if let Some(&id) = window.requests.id.first()
            && is_idle(window)
        {
            whole(plan, 0, 0, &[id]);
        }
    })
}

#[test]
fn a_flood_of_a_pinned_variant_leaves_every_second_batch_to_the_policy() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(fcfs());
    let (mut next, mut flood, mut others) = (0, 0, Vec::new());
    for millisecond in 0..2_000 {
        driver.advance_to(Time(millisecond * 1_000));
        // 128 connections, each with one request at a time.
        while flood < 128 + driver.replies.len() - others_ended(&driver, &others) {
            (next, flood) = (next + 1, flood + 1);
            driver.arrive(pinned(next, driver.now, 100_000));
        }
        if millisecond % 50 == 0 {
            next += 1;
            others.push(next);
            let urgent = request(next, 0, driver.now, 100_000);
            driver.arrive(Request {
                priority: 1,
                ..urgent
            });
        }
    }
    let ended: Vec<_> = others
        .iter()
        .filter_map(|&id| driver.replies.get(&RequestId(id)))
        .collect();
    assert!(ended.len() >= others.len() - 1);
    for reply in ended {
        // The batch that runs, and its own.
        assert!(reply.latency <= Micros(12_000 + 1_000), "{}", reply.latency);
    }
    let flood = driver.replies.len() - others_ended(&driver, &others);
    assert!(flood > 8 * 150, "the flood uses the rest: {flood}");
}

fn others_ended(driver: &Driver, others: &[u64]) -> usize {
    let ended = |id: &&u64| driver.replies.contains_key(&RequestId(**id));
    others.iter().filter(ended).count()
}

/// The other way round.
#[test]
fn a_pinned_request_waits_for_one_batch_of_a_busy_policy() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(install("keen", |window, plan| {
        let room = 4 - window.workers.queued[0] as usize;
        for &id in window.requests.id.iter().take(room) {
            whole(plan, 0, 0, &[id]);
        }
    }));
    for id in 1..=100 {
        driver.arrive(request(id, 0, Time::ZERO, 1_000_000));
    }
    driver.arrive(pinned(101, Time::ZERO, 1_000_000));
    driver.drain();
    driver.check_empty();
    let position = driver.runs.iter().position(|(_, run)| run.variant == LARGE);
    assert_eq!(position, Some(1));
}

#[test]
fn pinned_requests_start_in_the_order_of_their_deadlines() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.arrive(pinned(1, Time::ZERO, 900_000));
    for id in 2..=20 {
        driver.arrive(pinned(id, Time::ZERO, 900_000 - id * 1_000));
    }
    driver.drain();
    driver.check_empty();
    let order = driver.runs.iter().flat_map(|(_, run)| run.requests.iter());
    let order: Vec<_> = order.map(|id| id.0).collect();
    assert_eq!(
        order,
        std::iter::once(1).chain((2..=20).rev()).collect::<Vec<_>>()
    );
    let sizes: Vec<_> = driver
        .runs
        .iter()
        .map(|(_, run)| run.requests.len())
        .collect();
    assert_eq!(sizes, [1, 8, 8, 3]);
}

#[test]
fn pinned_and_pending_requests_share_one_bound() {
    let config = SchedulerConfig {
        pending_max: 4,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog(1), config);
    driver.give(install("waits", |_, _| {}));
    // One runs, three wait.
    for id in 1..=4 {
        driver.arrive(pinned(id, Time::ZERO, 1_000_000));
    }
    driver.arrive(request(5, 0, Time::ZERO, 1_000_000));
    assert_eq!((driver.scheduler.pending(), driver.replies.len()), (4, 0));
    driver.arrive(request(6, 0, Time::ZERO, 1_000_000));
    driver.arrive(pinned(7, Time::ZERO, 1_000_000));
    for id in [6, 7] {
        let outcome = &driver.replies[&RequestId(id)].outcome;
        assert_eq!(outcome, &Outcome::Rejected(Rejection::PendingFull));
    }
}

#[test]
fn a_pinned_request_can_be_cancelled_while_it_waits() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    for id in 1..=3 {
        driver.arrive(pinned(id, Time::ZERO, 1_000_000));
    }
    driver.give(Event::Cancelled(RequestId(2)));
    driver.drain();
    driver.check_empty();
    assert_eq!(driver.replies[&RequestId(2)].outcome, Outcome::Cancelled);
    let ran = driver
        .runs
        .iter()
        .any(|(_, run)| run.requests.contains(&RequestId(2)));
    assert!(!ran);
}

#[test]
fn a_waiting_pinned_request_runs_where_a_worker_is_left() {
    let mut driver = Driver::new(catalog(2), SchedulerConfig::default());
    for id in 1..=3 {
        driver.arrive(pinned(id, Time::ZERO, 1_000_000));
    }
    driver.give(Event::WorkerDown {
        worker: WorkerId(0),
        reason: "unplugged".to_owned(),
    });
    driver.drain();
    driver.check_empty();
    let (_, last) = driver.runs.last().unwrap();
    assert_eq!(last.worker, WorkerId(1));
    assert!(last.requests.contains(&RequestId(3)));
}
