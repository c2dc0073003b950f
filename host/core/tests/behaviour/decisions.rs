//! Decisions as commands, and as the history keeps them.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::decision::Decision;
use switchyard_core::event::Event;
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::plan::Plan;
use switchyard_core::policy::{EarliestDeadlineFirst, FaultKind, Policy, WindowFields};
use switchyard_core::time::{Micros, Time};

use crate::bed::chaos::Useless;
use crate::bed::driver::Driver;
use crate::bed::script::{install, whole};
use crate::bed::{catalog, request};

fn driver(tells_decisions: bool, history: usize) -> Driver {
    let config = SchedulerConfig {
        tells_decisions,
        history,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog(1), config);
    driver.give(install("script", |window, plan| {
        if let Some(&id) = window.requests.id.first() {
            whole(plan, 0, 0, &[id]);
        }
    }));
    for id in 1..=8 {
        driver.arrive(request(id, 0, driver.now, 50_000));
        driver.drain();
    }
    driver
}

fn members(decision: &Decision) -> Vec<RequestId> {
    decision.plan.members.clone()
}

#[test]
fn every_decision_is_told_once_where_it_is_asked_for() {
    assert!(driver(false, 64).decisions.is_empty());
    let driver = driver(true, 64);
    let ids: Vec<u64> = driver.decisions.iter().map(|d| d.window.id).collect();
    assert_eq!(ids, Vec::from_iter(1..=driver.scheduler.windows_opened()));
    let kept: Vec<_> = driver.scheduler.history().iter().cloned().collect();
    assert_eq!(driver.decisions, kept);
    let placed: Vec<_> = driver.decisions.iter().flat_map(|d| members(d)).collect();
    assert_eq!(placed, (1..=8).map(RequestId).collect::<Vec<_>>());
}

/// The scheduler reuses buffers, except those that a reader holds.
#[test]
fn a_decision_that_is_held_does_not_change() {
    for history in [0, 1, 3] {
        let (few, many) = (driver(true, history), driver(true, 64));
        assert_eq!(few.decisions, many.decisions, "{history}");
    }
}

#[test]
fn a_window_that_the_policy_never_saw_is_marked() {
    let mut driver = driver(true, 1);
    driver.decisions.clear();
    driver.give(Event::PolicyChanged(Box::new(Useless::faulting(
        FaultKind::Trap,
    ))));
    driver.give(Event::PolicyRemoved);
    driver.arrive(request(9, 0, Time(driver.now.0), 50_000));
    driver.drain();
    assert!(driver.decisions.iter().all(|decision| !decision.rescue));

    driver.give(install("waits", |_, _| {}));
    driver.decisions.clear();
    driver.arrive(request(10, 0, driver.now, 1_000));
    driver.drain();
    let rescues = driver.decisions.iter().filter(|decision| decision.rescue);
    let by: Vec<_> = rescues.map(|d| d.by.split('@').next().unwrap()).collect();
    assert_eq!(by, ["edf-fallback"], "it starved request 10");
}

/// A window shows the slowdown that the decision rests on.
#[test]
fn the_fallbacks_plans_can_be_made_again_from_their_windows() {
    let config = SchedulerConfig {
        follows_latencies: true,
        ..SchedulerConfig::default()
    };
    let catalog = catalog(1);
    let mut driver = Driver::new(catalog.clone(), config);
    driver.slowdown = |_| 3.0;
    driver.give(Event::Residency {
        worker: WorkerId(0),
        resident: (0..3).map(VariantId).collect(),
        free_bytes: 7_000,
    });
    for id in 1..=60 {
        driver.arrive(request(id, 0, driver.now, 20_000));
        driver.advance_to(driver.now + Micros(2_500));
    }
    let slow = |decision: &&Arc<Decision>| decision.window.slowdown[0].ratio() > 2.0;
    let decisions = driver.scheduler.decisions(64);
    assert!(decisions.iter().filter(slow).count() > 10);
    let mut again = EarliestDeadlineFirst::default();
    again.configure(&catalog).unwrap();
    for decision in decisions {
        let mut plan = Plan::default();
        again.schedule(&decision.window, &mut plan).unwrap();
        assert_eq!(plan, decision.plan, "window {}", decision.window.id);
    }
}

/// While decisions are watched, they come as commands and windows show the watched fields.
#[test]
fn watched_windows_show_more_than_the_policy_asked_for() {
    let mut driver = driver(false, 64);
    driver.give(Event::Residency {
        worker: WorkerId(0),
        resident: vec![VariantId(0)],
        free_bytes: 9_000,
    });
    let fields = WindowFields {
        residents: true,
        ..WindowFields::default()
    };
    let mut arrive = |id, watched| {
        driver.give(Event::Watched(watched));
        driver.decisions.clear();
        driver.arrive(request(id, 0, driver.now, 50_000));
        driver.drain();
        driver.decisions.clone()
    };
    let told = arrive(9, Some(fields));
    assert!(!told.is_empty());
    assert!(told.iter().all(|told| told.window.residents.len() == 1));
    assert!(told.iter().all(|told| told.window.placed.id.is_empty()));
    assert!(arrive(10, None).is_empty());
}
