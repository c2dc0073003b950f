//! A run decided from outside equals the run of a policy with the same plans.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Plan, Route};
use switchyard_core::policy::{Description, Policy, PolicyFault, WindowFields};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;
use switchyard_sim::{Contender, Report, Scenario, ServiceTimes, Stepped, run};

use crate::test_bed::{catalog, scenario};

const SLOT: Micros = Micros::from_millis(100);
const WANTS: WindowFields = WindowFields {
    evidence: false,
    completions: false,
    placed: true,
    residents: true,
};

/// Slots that are decided; the last routes stay in force for the rest.
const SLOTS: u64 = 190;

/// Routes whose shares depend on the window.
fn decide(window: &Window, plan: &mut Plan) {
    if window.now >= Time(SLOTS * SLOT.0) {
        return;
    }
    let busy = window.placed.id.len() as u32;
    let first = 0.2 + 0.6 / f64::from(1 + busy % 5);
    let lane = |worker, variant, weight| Lane {
        worker: WorkerId(worker),
        variant: VariantId(variant),
        exit: ExitId(if variant == 1 { 1 } else { 0 }),
        weight,
        min_batch: 1,
        max_batch: 1 + busy % 3,
        capacity: 6,
    };
    plan.routes.push(Route {
        app: AppId(0),
        lanes: vec![lane(0, 1, first), lane(1, 0, 1.0 - first)],
    });
}

struct Slotted(Description, Vec<Window>);

impl Policy for Slotted {
    fn description(&self) -> &Description {
        &self.0
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        decide(window, plan);
        self.1.push(window.clone());
        Ok(())
    }
}

fn slotted() -> Contender {
    let description = Description {
        name: "outside".to_owned(),
        version: "0.1.0".to_owned(),
        every: Some(SLOT),
        when_empty: true,
        wants: WANTS,
        ..Description::default()
    };
    Contender::new("slotted", move || Slotted(description.clone(), Vec::new()))
}

fn bursty() -> Scenario {
    let mut scenario = scenario(catalog(2), "heart=mmpp:900,50,4,1");
    scenario.duration = Micros::from_millis(20_000);
    scenario.service = ServiceTimes::LogNormal { mean: 0.8, cv: 0.4 };
    scenario
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap()
}

fn stepped(scenario: &Scenario, seed: u64) -> Report {
    let mut stepped = Stepped::try_new(scenario, SLOT, WANTS, seed, ()).unwrap();
    let mut plan = Plan::default();
    for slot in 0..SLOTS {
        assert_eq!(stepped.window().now, Time(slot * SLOT.0));
        decide(stepped.window(), &mut plan);
        stepped.step(&mut plan).unwrap();
    }
    stepped.finish().unwrap()
}

#[test]
fn the_report_is_that_of_a_policy_with_the_same_plans() {
    let scenario = bursty();
    let inside = run(&scenario, &slotted(), 3).unwrap();
    let outside = stepped(&scenario, 3);
    assert!(
        inside.total.queue_full > 0 && inside.total.late > 0,
        "{inside:?}"
    );
    // The last window may be opened with a plan inside and without one outside.
    assert_eq!(json(&inside), json(&outside));
    assert_ne!(json(&stepped(&scenario, 4)), json(&outside));
}

#[test]
fn the_phase_is_the_one_in_which_the_requests_arrive() {
    let mut scenario = scenario(catalog(2), "heart=phases:1000x0.35s,10x0.65s");
    scenario.duration = Micros::from_millis(10_000);
    let mut stepped = Stepped::try_new(&scenario, SLOT, WANTS, 1, ()).unwrap();
    for slot in 0..60_u64 {
        let (phase, since) = stepped.phase(0).unwrap();
        let (second, into) = (slot / 10, slot % 10);
        let expected = if into < 4 {
            (0, second * 1_000_000)
        } else {
            (1, second * 1_000_000 + 350_000)
        };
        assert_eq!((phase, since.0), expected, "slot {slot}");
        stepped.step(&mut Plan::default()).unwrap();
    }
    assert_eq!(stepped.phase(1), None);
}

#[test]
fn markov_phases_are_left_as_often_as_they_should_be() {
    let mut scenario = scenario(catalog(2), "heart=mmpp:500,5,1,0.5");
    scenario.duration = Micros::from_millis(400_000);
    let mut stepped = Stepped::try_new(&scenario, SLOT, WANTS, 5, ()).unwrap();
    let (mut busy, mut changes, mut last) = (0, 0, (0, Time::ZERO));
    for _ in 0..4_000 {
        let phase = stepped.phase(0).unwrap();
        assert!(phase.1 <= stepped.window().now, "the phase has begun");
        busy += usize::from(phase.0 == 0);
        changes += usize::from(phase.1 != last.1);
        last = phase;
        stepped.step(&mut Plan::default()).unwrap();
    }
    // A third of the time busy; some 270 changes in 400 s.
    assert!((900..1_800).contains(&busy), "{busy}");
    assert!((200..340).contains(&changes), "{changes}");
}

#[test]
fn faults_leave_the_next_slots_to_be_decided_from_outside() {
    let mut scenario = scenario(catalog(2), "heart=periodic:20");
    scenario.duration = Micros::from_millis(30_000);
    let mut stepped = Stepped::try_new(&scenario, SLOT, WANTS, 1, ()).unwrap();
    let mut plan = Plan::default();
    for _ in 0..10 {
        plan.routes.push(Route {
            app: AppId(0),
            lanes: vec![Lane {
                // There is no such worker.
                worker: WorkerId(9),
                variant: VariantId(0),
                exit: ExitId(0),
                weight: 1.0,
                min_batch: 1,
                max_batch: 1,
                capacity: 1,
            }],
        });
        stepped.step(&mut plan).unwrap();
    }
    // Requests starve, one after the other.
    for _ in 0..200 {
        stepped.step(&mut plan).unwrap();
    }
    let mut rejected = 0;
    for _ in 0..10 {
        let waiting = &stepped.window().requests.id;
        plan.rejects.extend(waiting.iter().map(|&id| RequestId(id)));
        rejected += waiting.len() as u64;
        stepped.step(&mut plan).unwrap();
    }
    let report = stepped.finish().unwrap();
    assert_eq!(report.faults["refused"], 10);
    assert!(report.faults["starved"] > 5, "{:?}", report.faults);
    assert_eq!(report.taken_off, 0);
    assert!(rejected > 0);
    assert_eq!(report.ledger["rejected_by_policy"], rejected);
}
