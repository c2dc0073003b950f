//! For any behaviour of policy, clients and workers: every accepted request ends exactly once, no
//! request runs twice at once, and the same inputs give the same commands.

use std::sync::Arc;

use crate::bed::chaos::{Chaos, Useless};
use crate::bed::driver::Driver;
use crate::bed::steps::{SchedulerStep, scheduler_step};
use crate::bed::{catalog, request};
use proptest::prelude::*;
use switchyard_core::SchedulerConfig;
use switchyard_core::canary::{Canary, CanaryParts, CanaryRule};
use switchyard_core::catalog::{Catalog, Late};
use switchyard_core::event::{Event, Notice};
use switchyard_core::guard::FaultLimit;
use switchyard_core::ids::WorkerId;
use switchyard_core::policy::{FaultKind, Policy};
use switchyard_core::time::Micros;

fn play(steps: &[SchedulerStep], seed: u64, hostility: f64) -> Driver {
    let mut catalog = catalog(2);
    // Every treatment of late requests, and predictions that follow the machine or do not.
    let late = [Late::Serve, Late::Drop, Late::Last, Late::Shed];
    for (a, app) in (0..).zip(&mut Arc::make_mut(&mut catalog).apps) {
        app.late = late[(seed >> (2 * a)) as usize % late.len()];
    }
    // One batch at a time, or up to three.
    for (w, worker) in (6..).zip(&mut Arc::make_mut(&mut catalog).workers) {
        worker.outstanding = 1 + (seed >> w) as u32 % 3;
    }
    let config = SchedulerConfig {
        seed,
        pending_max: 12,
        fault_limit: FaultLimit {
            faults: 6,
            windows: 20,
        },
        history: 4,
        follows_latencies: seed >> 4 & 1 == 1,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog.clone(), config);
    let chaos = |seed| Box::new(Chaos::new(seed, hostility, &catalog)) as Box<dyn Policy>;
    // Alone, or three of them in a canary.
    let policy = |seed: u64| match seed >> 5 & 1 {
        0 => chaos(seed),
        _ => Box::new(canary(&catalog, seed, [seed, seed, seed ^ 1].map(chaos))),
    };
    driver.give(Event::PolicyChanged(policy(seed)));
    driver.play(steps, policy);
    driver
}

/// Ends by a verdict now and then.
fn canary(catalog: &Arc<Catalog>, seed: u64, members: [Box<dyn Policy>; 3]) -> Canary {
    let [serving, baseline, candidate] = members;
    let parts = CanaryParts {
        serving,
        baseline,
        candidate,
        catalog: Arc::clone(catalog),
        share: 0.3,
        slot: Micros::from_millis(1 + seed % 5),
        seed,
        rule: CanaryRule {
            error: 0.3,
            ..CanaryRule::default()
        },
    };
    Canary::new(parts).0
}

/// Brings the workers back and lets the fallback end all requests. Again for workers that hang: they are
/// lost once their batch is overdue, up to two overdue ones before it included, within some 93 s.
fn finish(driver: &mut Driver) {
    driver.give(Event::PolicyRemoved);
    for _ in 0..3 {
        for w in 0..2 {
            driver.give(Event::WorkerUp(WorkerId(w)));
        }
        driver.drain();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The test driver checks books, double dispatches and replies after every command.
    #[test]
    fn every_request_ends_exactly_once(
        steps in prop::collection::vec(scheduler_step(), 1..120),
        seed in any::<u64>(),
        hostility in 0.0..1.0f64,
    ) {
        let mut driver = play(&steps, seed, hostility);
        finish(&mut driver);
        driver.check_empty();
    }

    /// Lost workers stay away: every request ends all the same, by its deadline and the patience.
    #[test]
    fn every_request_ends_if_no_worker_comes_back(
        steps in prop::collection::vec(scheduler_step(), 1..120),
        seed in any::<u64>(),
        hostility in 0.0..1.0f64,
    ) {
        let mut driver = play(&steps, seed, hostility);
        for w in 0..2 {
            driver.hang(WorkerId(w));
        }
        driver.give(Event::PolicyRemoved);
        // Workers that serve again are lost within some 93 s.
        driver.drain();
        driver.drain();
        driver.check();
        prop_assert_eq!(driver.due(), []);
    }

    #[test]
    fn the_same_inputs_give_the_same_commands(
        steps in prop::collection::vec(scheduler_step(), 1..80),
        seed in any::<u64>(),
        hostility in 0.0..0.5f64,
    ) {
        let (one, two) = (play(&steps, seed, hostility), play(&steps, seed, hostility));
        prop_assert_eq!(one.log, two.log);
    }

    /// Pins, lanes, lost workers and hostile plans: while both workers are up every request that
    /// is due ends, without another event.
    #[test]
    fn every_due_request_ends_without_another_event(
        steps in prop::collection::vec(scheduler_step(), 1..120),
        seed in any::<u64>(),
        hostility in 0.0..1.0f64,
    ) {
        let mut driver = play(&steps, seed, hostility);
        for w in 0..2 {
            driver.give(Event::WorkerUp(WorkerId(w)));
        }
        // A batch that hangs is overdue after some 31 s, or 93 s behind two overdue ones. Then up to 12
        // pending requests starve one after the other, each for a patience.
        driver.advance_to(driver.now + Micros::from_millis(120_000));
        let due = driver.due();
        prop_assert_eq!(due, [], "{:?}", driver.scheduler.next_wakeup());
    }

    /// With an active policy that faults on every window, the fallback answers every request.
    #[test]
    fn a_policy_that_always_faults_delays_no_request(
        arrivals in prop::collection::vec((0..2u32, 0..4_000u64), 1..60),
    ) {
        let faulting = Useless::faulting(FaultKind::Overrun);
        let driver = serve_with(faulting, &arrivals, FaultLimit { faults: usize::MAX, windows: 1_000 });
        let answered = driver.scheduler.ledger().by_outcome().get("in_time").copied();
        prop_assert_eq!(answered, Some(arrivals.len() as u64));
    }

    /// A policy that never faults and never decides starves no request: past the patience the
    /// fallback serves it, and the policy is taken off in the end.
    #[test]
    fn a_policy_that_never_decides_starves_no_request(
        arrivals in prop::collection::vec((0..1u32, 0..4_000u64), 1..60),
    ) {
        let driver = serve_with(Useless::silent(), &arrivals, FaultLimit::default());
        let starved = driver.notices.iter().any(|notice| matches!(
            notice,
            Notice::PolicyFaulted(faulted) if faulted.fault.kind == FaultKind::Starved
        ));
        prop_assert!(starved);
    }
}

fn serve_with(policy: Useless, arrivals: &[(u32, u64)], fault_limit: FaultLimit) -> Driver {
    let config = SchedulerConfig {
        fault_limit,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog(2), config);
    driver.give(Event::PolicyChanged(Box::new(policy)));
    for (id, &(app, gap_us)) in (1..).zip(arrivals) {
        driver.advance_to(driver.now + Micros(gap_us));
        driver.arrive(request(id, app, driver.now, 1_000_000));
    }
    driver.drain();
    driver.check_empty();
    driver
}
