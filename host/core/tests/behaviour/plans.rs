//! A plan is refused whole, with the entry, the field and the reason.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Capabilities, Catalog};
use switchyard_core::event::Notice;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Plan, Route};
use switchyard_core::policy::FaultKind;
use switchyard_core::time::Time;

use crate::bed::driver::Driver;
use crate::bed::script::{install, stages, whole};
use crate::bed::{catalog, request};

/// The refusal expected, and how the plan is made.
type Refusal = (&'static str, fn(&mut Plan));

/// The refusal of `plan`, as an answer to a window in which two requests of `heart` (1, 2) and one
/// of `fall` (3) are pending.
fn refusal(plan: impl Fn(&mut Plan) + Send + 'static) -> String {
    refusal_in(catalog(1), plan)
}

/// The same with another catalog of one worker.
fn refusal_in(catalog: Arc<Catalog>, plan: impl Fn(&mut Plan) + Send + 'static) -> String {
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    driver.give(install("script", move |window, out| {
        if window.len() == 3 {
            plan(out);
        }
    }));
    for (id, app) in [(1, 0), (2, 0), (3, 1)] {
        driver.arrive(request(id, app, Time::ZERO, 20_000));
    }
    let reason = driver.notices.iter().find_map(|notice| match notice {
        Notice::PolicyFaulted(faulted) => {
            assert_eq!(faulted.fault.kind, FaultKind::Refused);
            Some(faulted.fault.reason.clone())
        }
        _ => None,
    });
    driver.drain();
    driver.check_empty();
    reason.expect("the plan was accepted")
}

fn lane(weight: f64) -> Lane {
    Lane {
        worker: WorkerId(0),
        variant: VariantId(0),
        exit: ExitId(0),
        weight,
        min_batch: 1,
        max_batch: 4,
        capacity: 8,
    }
}

fn other_lane(weight: f64) -> Lane {
    Lane {
        variant: VariantId(1),
        ..lane(weight)
    }
}

fn route(lanes: Vec<Lane>) -> impl Fn(&mut Plan) + Send + 'static {
    move |plan| {
        plan.routes.push(Route {
            app: AppId(0),
            lanes: lanes.clone(),
        });
    }
}

#[test]
fn requests_must_be_pending_and_named_once() {
    let cases: &[Refusal] = &[
        ("members[0]: request 9 is not pending", |p| {
            whole(p, 0, 0, &[9]);
        }),
        ("request 1 is named more than once", |p| {
            whole(p, 0, 0, &[1, 1]);
        }),
        ("request 1 is named more than once", |p| {
            whole(p, 0, 0, &[1]);
            p.rejects.push(RequestId(1));
        }),
        ("dispatches hold 2 requests, members lists 1", |p| {
            whole(p, 0, 0, &[1]);
            p.dispatches[0].size = 2;
        }),
        ("revokes[0]: batch 7 is not queued", |p| {
            p.revokes.push(BatchId(7));
        }),
    ];
    for &(reason, plan) in cases {
        assert_eq!(refusal(plan), reason);
    }
}

#[test]
fn dispatches_must_name_existing_entries_that_fit() {
    let cases: &[Refusal] = &[
        ("dispatches[0].worker: there is no worker 9999", |p| {
            whole(p, 9_999, 0, &[1]);
        }),
        ("dispatches[0].variant: there is no variant 8", |p| {
            whole(p, 0, 8, &[1]);
        }),
        ("dispatches[0].variant: request 3 is of another app", |p| {
            whole(p, 0, 0, &[1, 3]);
        }),
        ("dispatches[0].exit: large has no exit 5", |p| {
            stages(p, 0, 1, 0..1, Some(5), &[1]);
        }),
        ("dispatches[0].exit: exit1 follows stage 3, not 2", |p| {
            stages(p, 0, 1, 0..2, Some(1), &[1]);
        }),
        (
            "dispatches[0].to-stage: [2, 2) is not a range of 3 stages",
            |p| {
                stages(p, 0, 1, 2..2, None, &[1]);
            },
        ),
        (
            "dispatches[0].to-stage: [0, 4) is not a range of 3 stages",
            |p| {
                stages(p, 0, 1, 0..4, None, &[1]);
            },
        ),
        (
            "dispatches[0].exit: after the last stage there is nothing to park for",
            |p| {
                stages(p, 0, 1, 0..3, None, &[1]);
            },
        ),
        (
            "dispatches[0].from-stage: request 1 has run no stage",
            |p| {
                stages(p, 0, 1, 1..3, Some(1), &[1]);
            },
        ),
        ("dispatches[1].size: 0 is not within 1 to 8", |p| {
            whole(p, 0, 0, &[1]);
            whole(p, 0, 0, &[]);
        }),
    ];
    for &(reason, plan) in cases {
        assert_eq!(refusal(plan), reason);
    }
}

#[test]
fn a_worker_runs_only_batches_of_its_capabilities() {
    let able = |change: fn(&mut Capabilities)| {
        let mut catalog = catalog(1);
        change(&mut Arc::make_mut(&mut catalog).workers[0].can);
        catalog
    };
    let park = |p: &mut Plan| stages(p, 0, 1, 0..1, None, &[1]);
    let early = |p: &mut Plan| stages(p, 0, 1, 0..1, Some(0), &[1]);
    let cases: [(fn(&mut Capabilities), fn(&mut Plan), &str); 4] = [
        (
            |can| can.stage_ranges = false,
            park,
            "dispatches[0].to-stage: w0 runs whole variants, no ranges of stages",
        ),
        (
            |can| can.parking = false,
            park,
            "dispatches[0].exit: w0 parks no requests",
        ),
        (
            |can| can.exits = false,
            early,
            "dispatches[0].exit: w0 answers at last exits only",
        ),
        (
            |can| can.exits = false,
            |p| {
                let early = Lane {
                    variant: VariantId(1),
                    ..lane(1.0)
                };
                route(vec![early])(p);
            },
            "routes[0].lanes[0].exit: w0 answers at last exits only",
        ),
    ];
    // The fallback serves the window in each case, with batches that the worker runs.
    for (change, plan, reason) in cases {
        assert_eq!(refusal_in(able(change), plan), reason);
    }
}

#[test]
fn answers_need_evidence_and_a_sneakpeek_model() {
    assert_eq!(
        refusal(|p| p.answers.push(RequestId(1))),
        "answers[0].request: its evidence is not ready"
    );
    assert_eq!(
        refusal(|p| p.answers.push(RequestId(3))),
        "answers[0].request: its app has no SneakPeek model"
    );
}

#[test]
fn routes_must_be_distributions_over_lanes_that_exist() {
    let cases = [
        (
            vec![lane(0.5)],
            "routes[0].lanes: the weights are not a distribution",
        ),
        (
            vec![lane(f64::NAN)],
            "routes[0].lanes: the weights are not a distribution",
        ),
        (
            vec![lane(-0.5), other_lane(1.5)],
            "routes[0].lanes: the weights are not a distribution",
        ),
        (
            vec![lane(0.0), other_lane(0.0)],
            "routes[0].lanes: the weights are not a distribution",
        ),
        (
            vec![lane(0.5), lane(0.5)],
            "routes[0].lanes[1].worker: its variant and exit on it are those of lanes[0]",
        ),
        (
            vec![Lane {
                exit: ExitId(2),
                ..lane(1.0)
            }],
            "routes[0].lanes[0].exit: small has no exit 2",
        ),
        (
            vec![Lane {
                variant: VariantId(2),
                ..lane(1.0)
            }],
            "routes[0].lanes[0].variant: only is of another app",
        ),
        (
            vec![Lane {
                min_batch: 5,
                ..lane(1.0)
            }],
            "routes[0].lanes[0].min-batch: 5 to 4 is not within 1 to 8",
        ),
        (
            vec![Lane {
                capacity: 0,
                ..lane(1.0)
            }],
            "routes[0].lanes[0].capacity: not within min-batch to 65536",
        ),
    ];
    for (lanes, reason) in cases {
        assert_eq!(refusal(route(lanes)), reason);
    }
}

#[test]
fn queues_and_parking_are_bounded() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(install("script", |window, plan| {
        for &id in &window.requests.id {
            whole(plan, 0, 0, &[id]);
        }
    }));
    // One running and four queued are allowed; the plan with a fifth is refused.
    for id in 1..=6 {
        driver.arrive(request(id, 0, Time::ZERO, 1_000_000));
    }
    let refused = |notice: &Notice| match notice {
        Notice::PolicyFaulted(faulted) => faulted.fault.reason.clone(),
        other => panic!("unexpected {other:?}"),
    };
    let reasons: Vec<_> = driver.notices[1..].iter().map(refused).collect();
    assert_eq!(
        reasons,
        ["dispatches[0].worker: w0 queues at most 4 batches"]
    );

    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(install("parker", |window, plan| {
        if window.len() == 7 {
            stages(plan, 0, 1, 0..1, None, &window.requests.id);
        }
    }));
    for id in 1..=7 {
        driver.arrive(request(id, 0, Time::ZERO, 1_000_000));
    }
    assert_eq!(
        refused(&driver.notices[1]),
        "dispatches[0].exit: w0 parks at most 6 requests"
    );
}

/// Refused by count: the check does not look at the entries.
#[test]
fn lists_longer_than_the_state_can_name_are_refused() {
    const MANY: usize = 600_000;
    let cases: &[Refusal] = &[
        (
            "routes[0].lanes: 600000 entries, of which at most 3 can be valid",
            |p| route(vec![lane(1.0 / MANY as f64); MANY])(p),
        ),
        (
            "routes: 600000 entries, of which at most 2 can be valid",
            |p| {
                let app = AppId(0);
                p.routes.resize(MANY, Route { app, lanes: vec![] });
            },
        ),
        (
            "members: 600000 entries, of which at most 3 can be valid",
            |p| {
                whole(p, 0, 0, &[1; MANY]);
            },
        ),
        (
            "rejects: 600000 entries, of which at most 3 can be valid",
            |p| {
                p.rejects.resize(MANY, RequestId(1));
            },
        ),
        (
            "answers: 600000 entries, of which at most 3 can be valid",
            |p| {
                p.answers.resize(MANY, RequestId(1));
            },
        ),
        (
            "revokes: 600000 entries, of which at most 0 can be valid",
            |p| {
                p.revokes.resize(MANY, BatchId(1));
            },
        ),
        (
            "dispatches: 600000 entries, of which at most 1 can be valid",
            |p| {
                whole(p, 0, 0, &[1]);
                let first = p.dispatches[0];
                p.dispatches.resize(MANY, first);
            },
        ),
    ];
    for &(reason, plan) in cases {
        assert_eq!(refusal(plan), reason);
    }
}

#[test]
fn a_batch_is_taken_back_once() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(install("twice", |window, plan| match window.id {
        2 => whole(plan, 0, 0, &[1]),
        3 => whole(plan, 0, 0, &[2]),
        4 => plan.revokes.extend([BatchId(2), BatchId(2)]),
        _ => {}
    }));
    for id in 1..=3 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    let Some(Notice::PolicyFaulted(faulted)) = driver.notices.last() else {
        panic!("accepted: {:?}", driver.notices);
    };
    assert_eq!(faulted.fault.reason, "revokes[1]: batch 2 is not queued");
}

/// The history keeps the buffers of many windows.
#[test]
fn a_huge_plan_leaves_no_memory_in_the_history() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(install("huge", |_, plan| {
        plan.rejects.resize(1_000_000, RequestId(1));
        plan.reasons.resize(1_000_000, (0, String::new()));
    }));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.drain();
    let kept = driver.scheduler.history().iter();
    let kept: Vec<_> = kept.map(|decision| &decision.plan).collect();
    assert!(!kept.is_empty());
    for plan in kept {
        assert!(
            plan.rejects.capacity() < 10_000,
            "{}",
            plan.rejects.capacity()
        );
        assert!(
            plan.reasons.capacity() < 10_000,
            "{}",
            plan.reasons.capacity()
        );
    }
}
