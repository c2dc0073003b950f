//! Good plans are carried out: batches, stages, routes, revokes, deadlines, pins.

use std::sync::{Arc, Mutex};

use switchyard_core::SchedulerConfig;
use switchyard_core::event::Event;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Route};
use switchyard_core::request::{DroppedFrom, Outcome, Rejection};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{Resident, Window};

use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::{catalog, request};

fn driver(workers: usize) -> Driver {
    Driver::new(catalog(workers), SchedulerConfig::default())
}

fn outcome(driver: &Driver, id: u64) -> &Outcome {
    &driver.replies[&RequestId(id)].outcome
}

#[test]
fn a_batch_is_answered_with_its_variant_exit_and_decision() {
    let mut driver = driver(1);
    driver.give(install("script", |window, plan| {
        if window.len() == 2 {
            stages(plan, 0, 1, 0..3, Some(1), &[1, 2]);
        }
    }));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.arrive(request(2, 0, Time::ZERO, 6_000));
    driver.drain();
    let answered = |in_time| Outcome::Answered {
        variant: VariantId(1),
        exit: ExitId(1),
        in_time,
    };
    // Three stages of 2 ms and a batch of two: 2 ms * 3 * (1 + 1/7), each rounded up.
    assert_eq!(outcome(&driver, 1), &answered(true));
    assert_eq!(outcome(&driver, 2), &answered(false));
    let reply = &driver.replies[&RequestId(1)];
    assert_eq!(reply.latency, Micros(3 * 2_286));
    assert_eq!(reply.decided.as_ref().unwrap().by.as_ref(), "script@1");
    assert_eq!(reply.ran.unwrap().size, 2);
}

#[test]
fn stages_park_and_go_on_where_they_are() {
    let mut driver = driver(2);
    driver.give(install("slicer", |window, plan| {
        for (i, &id) in window.requests.id.iter().enumerate() {
            let parked = window
                .requests
                .progress
                .iter()
                .find(|p| p.index as usize == i);
            match parked {
                None => stages(plan, 1, 1, 0..1, None, &[id]),
                Some(p) => stages(plan, p.worker.0, 1, p.stages_run..3, Some(1), &[id]),
            }
        }
    }));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.drain();
    driver.check_empty();
    let ranges: Vec<_> = driver
        .runs
        .iter()
        .map(|(_, r)| (r.from_stage, r.to_stage))
        .collect();
    assert_eq!(ranges, [(0, 1), (1, 3)]);
    assert!(matches!(
        outcome(&driver, 1),
        Outcome::Answered { in_time: true, .. }
    ));
}

#[test]
fn a_queued_batch_can_be_taken_back_and_dispatched_anew_in_one_plan() {
    let mut driver = driver(1);
    driver.give(install("regret", |window, plan| match window.id {
        2 => whole(plan, 0, 0, &[1]),
        3 => whole(plan, 0, 0, &[2]),
        4 => {
            plan.revokes.push(BatchId(2));
            whole(plan, 0, 0, &[2, 3]);
        }
        _ => {}
    }));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    driver.drain();
    driver.check_empty();
    let sizes: Vec<_> = driver.runs.iter().map(|(_, r)| r.requests.len()).collect();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn place_puts_a_batch_ahead_of_the_queue() {
    let mut driver = driver(1);
    driver.give(install("urgent", |window, plan| {
        if let [id] = window.requests.id[..] {
            whole(plan, 0, 0, &[id]);
            if id == 3 {
                plan.dispatches[0].place = 0;
            }
        }
    }));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    driver.drain();
    let order: Vec<_> = driver.runs.iter().map(|(_, r)| r.requests[0].0).collect();
    assert_eq!(order, [1, 3, 2]);
}

#[test]
fn short_circuits_answer_from_evidence() {
    let mut driver = driver(1);
    driver.give(install("peek", |window, plan| {
        let ready = &window.requests.evidence_index;
        plan.answers.extend(
            ready
                .iter()
                .map(|&i| RequestId(window.requests.id[i as usize])),
        );
    }));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.give(Event::Evidence {
        request: RequestId(1),
        counts: [4, 1].into_iter().collect(),
    });
    // The policy does not listen to evidence; the next arrival opens a window.
    driver.arrive(request(2, 0, Time::ZERO, 20_000));
    let reply = &driver.replies[&RequestId(1)];
    assert_eq!(reply.outcome, Outcome::ShortCircuited { in_time: true });
    assert_eq!(reply.evidence.as_deref(), Some([4, 1].as_slice()));
}

#[test]
fn routes_take_arrivals_without_a_window() {
    let mut driver = driver(2);
    let lane = |worker| Lane {
        worker: WorkerId(worker),
        variant: VariantId(0),
        exit: ExitId(0),
        weight: 0.5,
        min_batch: 2,
        max_batch: 4,
        capacity: 4,
    };
    driver.give(install("router", move |window, plan| {
        if window.because.changed {
            plan.routes.push(Route {
                app: AppId(0),
                lanes: vec![lane(0), lane(1)],
            });
        }
    }));
    let windows = driver.scheduler.windows_opened();
    for id in 1..=40 {
        driver.arrive(request(id, 0, driver.now, 20_000));
    }
    assert_eq!(driver.scheduler.windows_opened(), windows);
    assert!(
        driver
            .runs
            .iter()
            .all(|(_, run)| (2..=4).contains(&run.requests.len()))
    );
    let workers = driver.runs.iter().map(|(_, run)| run.worker.0);
    assert_eq!(workers.collect::<std::collections::BTreeSet<_>>().len(), 2);
    // Two run at once, four wait in each lane at most, the rest was refused.
    let full = Outcome::Rejected(Rejection::LaneFull);
    let refused = driver
        .replies
        .values()
        .filter(|r| r.outcome == full)
        .count();
    assert_eq!(refused, 40 - driver.scheduler.live());
    driver.give(Event::PolicyRemoved);
    driver.drain();
    driver.check_empty();
}

#[test]
fn late_requests_are_dropped_only_by_apps_that_drop() {
    let mut driver = driver(1);
    driver.give(install("waits", |_, _| {}));
    driver.arrive(request(1, 0, Time::ZERO, 5_000));
    driver.arrive(request(2, 1, Time::ZERO, 5_000));
    driver.advance_to(Time(5_000));
    assert!(driver.replies.is_empty(), "the deadline itself is in time");
    driver.advance_to(Time(5_001));
    assert_eq!(outcome(&driver, 2), &Outcome::Dropped(DroppedFrom::Pending));
    assert_eq!(driver.replies.len(), 1);
}

#[test]
fn a_queued_request_that_expires_never_runs() {
    let mut driver = driver(1);
    driver.give(install("fcfs", |window, plan| {
        for (&id, &app) in window.requests.id.iter().zip(&window.requests.app) {
            whole(plan, 0, if app == 1 { 2 } else { 0 }, &[id]);
        }
    }));
    driver.arrive(request(1, 1, Time::ZERO, 20_000));
    driver.arrive(request(2, 1, Time::ZERO, 2_000));
    driver.drain();
    assert_eq!(outcome(&driver, 2), &Outcome::Dropped(DroppedFrom::Queue));
    assert_eq!(driver.runs.len(), 1);
}

#[test]
fn a_pinned_request_never_reaches_the_policy() {
    let mut driver = driver(2);
    driver.give(install("blind", |window, _| assert!(window.is_empty())));
    for id in 1..=5 {
        let mut pinned = request(id, 0, Time::ZERO, 20_000);
        pinned.pinned = Some(VariantId(1));
        driver.arrive(pinned);
    }
    driver.drain();
    driver.check_empty();
    assert!(
        driver
            .runs
            .iter()
            .all(|(_, run)| run.variant == VariantId(1))
    );
    assert_eq!(
        driver.runs.len(),
        3,
        "two start at once, the others together"
    );
}

#[test]
fn a_full_scheduler_rejects() {
    let config = SchedulerConfig {
        pending_max: 2,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog(1), config);
    driver.give(install("waits", |_, _| {}));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    assert_eq!(
        outcome(&driver, 3),
        &Outcome::Rejected(Rejection::PendingFull)
    );
    driver.give(Event::Drain);
    driver.arrive(request(4, 0, Time::ZERO, 20_000));
    assert_eq!(outcome(&driver, 4), &Outcome::Rejected(Rejection::Draining));
}

#[test]
fn the_window_shows_workers_placements_residents_and_completions() {
    let seen = Arc::new(Mutex::new(Window::default()));
    let mut driver = driver(1);
    let keep = Arc::clone(&seen);
    driver.give(install("looks", move |window, plan| {
        keep.lock().unwrap().clone_from(window);
        if let [id] = window.requests.id[..] {
            whole(plan, 0, 0, &[id]);
        }
    }));
    driver.give(Event::Residency {
        worker: WorkerId(0),
        resident: vec![VariantId(0)],
        free_bytes: 9_000,
    });
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    {
        let window = seen.lock().unwrap();
        assert_eq!(window.requests.id, [3]);
        assert_eq!(window.workers.busy_until, [1_000]);
        assert_eq!(window.workers.free_at, [2_000], "one queued batch of 1 ms");
        assert_eq!(window.workers.running_variant, [0]);
        assert_eq!(
            (window.placed.id.as_slice(), window.placed.state.as_slice()),
            ([1, 2].as_slice(), [2, 1].as_slice())
        );
        let resident = Resident {
            worker: WorkerId(0),
            variant: VariantId(0),
        };
        assert_eq!(window.residents, [resident]);
        assert_eq!(window.arrival_rate, [6.0, 0.0]);
    }
    driver.advance_to(Time(1_000));
    let window = seen.lock().unwrap();
    assert_eq!(window.completions.len(), 1);
    assert_eq!(window.completions[0].latency, Micros(1_000));
}

#[test]
fn variants_behind_a_running_batch_are_prepared_until_they_are_resident() {
    let mut driver = driver(1);
    let ask = |id, variant| switchyard_core::request::Request {
        pinned: Some(VariantId(variant)),
        ..request(id, 0, Time::ZERO, 20_000)
    };
    driver.arrive(ask(1, 0));
    assert!(driver.prepared.is_empty(), "no batch waits behind it");
    driver.arrive(ask(2, 1));
    let told = vec![(WorkerId(0), vec![VariantId(1)])];
    assert_eq!(
        driver.prepared, told,
        "the client pinned it, so no policy was asked"
    );
    driver.arrive(ask(3, 1));
    assert_eq!(driver.prepared, told, "the list is the same");
    driver.arrive(ask(4, 0));
    assert_eq!(
        driver.prepared.last().unwrap().1,
        [VariantId(1), VariantId(0)]
    );
    driver.give(Event::Residency {
        worker: WorkerId(0),
        resident: vec![VariantId(0), VariantId(1)],
        free_bytes: 0,
    });
    let told = driver.prepared.len();
    driver.drain();
    assert_eq!(driver.prepared.len(), told, "all of them are resident");
    let soon: Vec<_> = driver
        .runs
        .iter()
        .map(|(_, run)| run.soon.to_vec())
        .collect();
    assert_eq!(
        soon[1],
        [VariantId(0)],
        "the next batch needs it, so it is evicted last"
    );
    driver.check_empty();
}
