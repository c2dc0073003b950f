//! Whatever the policy, the clients and the workers do: every accepted request ends exactly
//! once, nothing runs twice, and the same inputs give the same commands.

use crate::yard::chaos::{Chaos, Useless};
use crate::yard::driver::Driver;
use crate::yard::{catalog, request};
use proptest::prelude::*;
use switchyard_core::SchedulerConfig;
use switchyard_core::event::{Event, Notice};
use switchyard_core::guard::FaultLimit;
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::policy::FaultKind;
use switchyard_core::time::Micros;

#[derive(Clone, Debug)]
enum Step {
    Arrive {
        app: u32,
        slack_us: u64,
        pinned: Option<u32>,
    },
    Evidence(u64),
    Cancel(u64),
    Wait(u64),
    Fail(u32),
    Down(u32),
    Up(u32),
    Swap(u64),
    Remove,
    Recatalog,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..2u32, 0..30_000u64, prop::option::weighted(0.1, 0..3u32))
            .prop_map(|(app, slack_us, pinned)| Step::Arrive { app, slack_us, pinned }),
        4 => (0..80u64).prop_map(Step::Evidence),
        2 => (0..80u64).prop_map(Step::Cancel),
        6 => (0..6_000u64).prop_map(Step::Wait),
        1 => (0..2u32).prop_map(Step::Fail),
        1 => (0..2u32).prop_map(Step::Down),
        1 => (0..2u32).prop_map(Step::Up),
        1 => (0..1_000u64).prop_map(Step::Swap),
        1 => Just(Step::Remove),
        1 => Just(Step::Recatalog),
    ]
}

fn play(steps: &[Step], seed: u64, hostility: f64) -> Driver {
    let catalog = catalog(2);
    let config = SchedulerConfig {
        seed,
        pending_max: 12,
        fault_limit: FaultLimit {
            faults: 6,
            windows: 20,
        },
        history: 4,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog.clone(), config);
    let policy = |seed| Box::new(Chaos::new(seed, hostility, &catalog));
    driver.give(Event::PolicyChanged(policy(seed)));
    let mut next = 0;
    for step in steps {
        match *step {
            Step::Arrive {
                app,
                slack_us,
                pinned,
            } => {
                next += 1;
                let mut arriving = request(next, app, driver.now, slack_us);
                arriving.pinned = pinned.map(VariantId);
                driver.arrive(arriving);
            }
            Step::Evidence(id) => driver.give(Event::Evidence {
                request: RequestId(id),
                counts: [3, 2].into_iter().collect(),
            }),
            Step::Cancel(id) => driver.give(Event::Cancelled(RequestId(id))),
            Step::Wait(us) => driver.advance_to(driver.now + Micros(us)),
            Step::Fail(w) => driver.finish(WorkerId(w), Err("made to".to_owned())),
            Step::Down(w) => driver.give(Event::WorkerDown {
                worker: WorkerId(w),
                reason: "unplugged".to_owned(),
            }),
            Step::Up(w) => driver.give(Event::WorkerUp(WorkerId(w))),
            Step::Swap(seed) => driver.give(Event::PolicyChanged(policy(seed))),
            Step::Remove => driver.give(Event::PolicyRemoved),
            Step::Recatalog => driver.give(Event::CatalogChanged(catalog.clone())),
        }
    }
    driver
}

/// Lets everything end: workers back, no new requests, the fallback serving.
fn finish(driver: &mut Driver) {
    for w in 0..2 {
        driver.give(Event::WorkerUp(WorkerId(w)));
    }
    driver.give(Event::PolicyRemoved);
    driver.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The driver checks the books, double dispatch and stray replies after every command.
    #[test]
    fn every_request_ends_exactly_once(
        steps in prop::collection::vec(step(), 1..120),
        seed in any::<u64>(),
        hostility in 0.0..1.0f64,
    ) {
        let mut driver = play(&steps, seed, hostility);
        finish(&mut driver);
        driver.check_empty();
    }

    #[test]
    fn the_same_inputs_give_the_same_commands(
        steps in prop::collection::vec(step(), 1..80),
        seed in any::<u64>(),
        hostility in 0.0..0.5f64,
    ) {
        let (one, two) = (play(&steps, seed, hostility), play(&steps, seed, hostility));
        prop_assert_eq!(one.log, two.log);
    }

    /// With an active policy that faults on every window, the fallback answers everything.
    #[test]
    fn a_policy_that_always_faults_holds_nothing_up(
        arrivals in prop::collection::vec((0..2u32, 0..4_000u64), 1..60),
    ) {
        let faulting = Useless::faulting(FaultKind::Overrun);
        let driver = serve_with(faulting, &arrivals, FaultLimit { faults: usize::MAX, windows: 1_000 });
        let answered = driver.scheduler.ledger().by_outcome().get("in_time").copied();
        prop_assert_eq!(answered, Some(arrivals.len() as u64));
    }

    /// A policy that never faults and never decides starves nobody: past its patience the
    /// host serves, and takes the policy off in the end.
    #[test]
    fn a_policy_that_never_decides_starves_nobody(
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
