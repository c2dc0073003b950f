//! Plans checked against windows: the verdicts of the live check, as far as a window shows the
//! moment.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Catalog;
use switchyard_core::event::{Event, Notice};
use switchyard_core::guard::FaultLimit;
use switchyard_core::ids::{AppId, BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Plan, PlanError, check_window};
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault, WindowFields};
use switchyard_core::time::Time;
use switchyard_core::window::{IDLE, PlacedState, RequestProgress, Window};

use crate::bed::catalog;
use crate::bed::chaos::Chaos;
use crate::bed::driver::Driver;
use crate::bed::script::{stages, whole};
use crate::bed::steps::{SchedulerStep, scheduler_step};

const ALL_FIELDS: WindowFields = WindowFields {
    evidence: true,
    completions: true,
    placed: true,
    residents: true,
};

/// A plan, its window, and the verdict of the window check.
#[derive(Debug)]
struct Verdict {
    policy: String,
    window: Window,
    plan: Plan,
    shown: Result<(), PlanError>,
}

/// Checks the plans of a hostile policy against their windows before the core checks them.
struct Compared {
    description: Description,
    inner: Chaos,
    catalog: Arc<Catalog>,
    verdicts: Arc<Mutex<Vec<Verdict>>>,
}

impl Policy for Compared {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.inner.configure(catalog)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.inner.schedule(window, plan)?;
        self.verdicts.lock().unwrap().push(Verdict {
            policy: self.description.label(),
            window: window.clone(),
            plan: plan.clone(),
            shown: check_window(window, &self.catalog, plan),
        });
        Ok(())
    }
}

/// The verdicts on all plans of a run, each with the live one.
fn verdicts(
    steps: &[SchedulerStep],
    seed: u64,
    hostility: f64,
) -> Vec<(Verdict, Result<(), String>)> {
    let catalog = catalog(2);
    let config = SchedulerConfig {
        seed,
        pending_max: 12,
        fault_limit: FaultLimit {
            faults: usize::MAX,
            windows: 20,
        },
        tells_decisions: true,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(Arc::clone(&catalog), config);
    let verdicts = Arc::new(Mutex::new(Vec::new()));
    let made = Cell::new(0);
    let policy = |seed| {
        let inner = Chaos::new(seed, hostility, &catalog);
        made.set(made.get() + 1);
        Box::new(Compared {
            description: Description {
                name: format!("compared-{}", made.get()),
                wants: ALL_FIELDS,
                ..inner.description().clone()
            },
            inner,
            catalog: Arc::clone(&catalog),
            verdicts: Arc::clone(&verdicts),
        }) as Box<dyn Policy>
    };
    driver.give(Event::PolicyChanged(policy(seed)));
    driver.play(steps, policy);
    let verdicts = std::mem::take(&mut *verdicts.lock().unwrap());
    let mut refusals = driver.notices.iter().filter_map(|notice| match notice {
        Notice::PolicyFaulted(faulted) if faulted.fault.kind == FaultKind::Refused => Some(faulted),
        _ => None,
    });
    let mut live = |verdict: &Verdict| {
        let mut decisions = driver.decisions.iter();
        let decision = decisions.find(|decision| decision.window.id == verdict.window.id);
        if *decision.unwrap().by == *verdict.policy {
            return Ok(());
        }
        let refusal = refusals.next().unwrap();
        assert_eq!(*refusal.policy, *verdict.policy);
        Err(refusal.fault.reason.clone())
    };
    let verdicts = verdicts.into_iter();
    verdicts
        .map(|verdict| {
            let live = live(&verdict);
            (verdict, live)
        })
        .collect()
}

/// Whether a live refusal rests on a fact that no window shows; see `check_window`.
fn is_beyond_the_window(refusal: &str, verdict: &Verdict) -> bool {
    let placed = &verdict.window.placed;
    let is_queued = |row: &usize| placed.state[*row] == PlacedState::Queued as u8;
    let queued = || (0..placed.id.len()).filter(is_queued);
    let mut words = refusal.split([' ', ':']);
    let mut number_after = |word| {
        words
            .find(|found| *found == word)
            .and_then(|_| words.next())
    };
    if refusal.contains(" parks at most ") {
        return true;
    }
    if refusal.contains(".from-stage: ") {
        let request = number_after("request");
        return queued().any(|row| request == Some(&placed.id[row].to_string()));
    }
    let is_answered = |row: usize| verdict.plan.answers.contains(&RequestId(placed.id[row]));
    refusal.ends_with("its evidence is not ready") && queued().any(is_answered)
}

#[test]
fn the_window_check_agrees_with_the_live_check() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 400,
        ..ProptestConfig::default()
    });
    let steps = prop::collection::vec(scheduler_step(), 1..120);
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    let count = |counter: &Cell<u32>| counter.set(counter.get() + 1);
    let outcome = runner.run(
        &(steps, any::<u64>(), 0.0..1.0),
        |(steps, seed, hostility)| {
            for (verdict, live) in verdicts(&steps, seed, hostility) {
                let shown = verdict.shown.as_ref().map_err(PlanError::to_string);
                let shown = shown.copied();
                match &live {
                    Ok(()) => count(&accepted),
                    Err(refusal) if shown != live && is_beyond_the_window(refusal, &verdict) => {
                        continue;
                    }
                    Err(_) => count(&refused),
                }
                prop_assert_eq!(&shown, &live, "{:?}", verdict);
            }
            Ok(())
        },
    );
    outcome.unwrap();
    let counts = [&accepted, &refused].map(Cell::get);
    let enough = counts.iter().all(|&count| count > 1_000);
    assert!(enough, "accepted, refused: {counts:?}");
}

/// Two idle workers; requests 1 and 2 of `heart` and 3 of `fall` are pending.
fn window() -> Window {
    let mut window = Window {
        id: 1,
        now: Time(1_000),
        ..Window::default()
    };
    for (id, app) in [(1, 0), (2, 0), (3, 1)] {
        let requests = &mut window.requests;
        requests.id.push(id);
        requests.app.push(app);
        requests.arrival.push(0);
        requests.deadline.push(20_000);
        requests.priority.push(0);
        requests.min_accuracy.push(0.0);
    }
    let workers = &mut window.workers;
    workers.queued = vec![0; 2];
    workers.parked = vec![0; 2];
    workers.running_variant = vec![IDLE; 2];
    workers.up = vec![1; 2];
    window
}

/// Request 9 of `heart` waits in batch 5 on worker 0, behind a running one.
fn with_queued_batch(mut window: Window) -> Window {
    window.workers.queued[0] = 1;
    window.workers.running_variant[0] = 0;
    window.placed.push(
        RequestId(9),
        AppId(0),
        Time(0),
        Time(20_000),
        WorkerId(0),
        VariantId(0),
        BatchId(5),
        PlacedState::Queued,
    );
    window
}

fn verdict(window: &Window, make: impl FnOnce(&mut Plan)) -> Result<(), String> {
    let mut plan = Plan::default();
    make(&mut plan);
    let verdict = check_window(window, &catalog(2), &plan);
    verdict.map_err(|error| error.to_string())
}

fn refused(words: &str) -> Result<(), String> {
    Err(words.to_owned())
}

#[test]
fn a_field_that_is_not_shown_counts_as_absent() {
    let mut window = with_queued_batch(window());
    let revoke = |plan: &mut Plan| plan.revokes.push(BatchId(5));
    assert_eq!(verdict(&window, revoke), Ok(()));
    window.placed = Default::default();
    assert_eq!(
        verdict(&window, revoke),
        refused("revokes[0]: batch 5 is not queued")
    );

    let answer = |plan: &mut Plan| plan.answers.push(RequestId(2));
    assert_eq!(
        verdict(&window, answer),
        refused("answers[0].request: its evidence is not ready")
    );
    window.requests.evidence_index = vec![1];
    window.requests.evidence_counts = vec![4, 1];
    assert_eq!(verdict(&window, answer), Ok(()));
}

#[test]
fn requests_of_a_revoked_batch_may_have_run_stages_and_have_evidence() {
    let window = with_queued_batch(window());
    let resume = |plan: &mut Plan| {
        plan.revokes.push(BatchId(5));
        stages(plan, 0, 1, 1..3, Some(1), &[9]);
    };
    assert_eq!(verdict(&window, resume), Ok(()));
    let answer = |plan: &mut Plan| {
        plan.revokes.push(BatchId(5));
        plan.answers.push(RequestId(9));
    };
    assert_eq!(verdict(&window, answer), Ok(()));
    let unrevoked = |plan: &mut Plan| whole(plan, 0, 0, &[9]);
    assert_eq!(
        verdict(&window, unrevoked),
        refused("members[0]: request 9 is not pending")
    );
}

#[test]
fn parked_requests_go_on_where_they_are() {
    let mut window = window();
    window.workers.parked[1] = 1;
    window.requests.progress = vec![RequestProgress {
        index: 1,
        worker: WorkerId(1),
        variant: VariantId(1),
        stages_run: 1,
    }];
    let resume = |worker| verdict(&window, |plan| stages(plan, worker, 1, 1..3, Some(1), &[2]));
    assert_eq!(resume(1), Ok(()));
    assert_eq!(
        resume(0),
        refused(
            "dispatches[0].from-stage: request 2 is parked on worker 1 after stage 1 of variant 1"
        )
    );
}

#[test]
fn only_requests_parked_now_count_towards_the_bound() {
    let mut window = window();
    let park = |plan: &mut Plan| stages(plan, 0, 1, 0..1, None, &[1, 2]);
    window.workers.parked[0] = 4;
    assert_eq!(verdict(&window, park), Ok(()));
    window.workers.parked[0] = 5;
    assert_eq!(
        verdict(&window, park),
        refused("dispatches[0].exit: w0 parks at most 6 requests")
    );
}

#[test]
fn a_window_without_rows_of_workers_has_none_to_run_on() {
    let mut window = window();
    window.workers = Default::default();
    window.requests.progress = vec![RequestProgress {
        index: 7,
        worker: WorkerId(9),
        variant: VariantId(9),
        stages_run: 9,
    }];
    window.requests.evidence_index = vec![8];
    let dispatch = |plan: &mut Plan| whole(plan, 1, 0, &[1]);
    assert_eq!(
        verdict(&window, dispatch),
        refused("dispatches[0].worker: w1 is away")
    );
    assert_eq!(verdict(&Window::default(), |_| {}), Ok(()));
}
