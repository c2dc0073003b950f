//! Canaries over many runs: a candidate that is worse is rolled back soon, an equal one hardly ever.

use std::sync::{Arc, Mutex};

use switchyard_core::canary::{Canary, CanaryParts, CanaryReport, CanaryRule, CanaryWatch};
use switchyard_core::canary::{Member, PromoteIf, Verdict, Why};
use switchyard_core::catalog::{Catalog, Late};
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault, Triggers};
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;
use switchyard_core::window::{IDLE, Window};
use switchyard_sim::{Contender, Scenario, ServiceTimes, run};

use crate::test_bed::{app, loads, row, scenario, variant, worker};

/// Variants of equal speed: the second one is 5 % worse.
const QUALITIES: [f64; 2] = [0.90, 0.855];

/// One app on workers that carry 4,000 requests per second each, in batches of 8.
fn pool(workers: usize) -> Arc<Catalog> {
    let mut variants = vec![
        variant("better", 0, &[(1, QUALITIES[0])]),
        variant("worse", 0, &[(1, QUALITIES[1])]),
    ];
    variants
        .iter_mut()
        .for_each(|variant| variant.max_batch = 8);
    let rows = (0..2).flat_map(|v| {
        [(1, 1_000), (8, 2_000)].map(|(batch, us)| row(v, 0, Some(ExitId(0)), batch, us))
    });
    let mut app = app("heart", true);
    app.late = Late::Shed;
    app.sneakpeek = None;
    Arc::new(Catalog {
        generation: 1,
        apps: vec![app],
        variants,
        kinds: vec!["cpu-1t".to_owned()],
        workers: (0..workers).map(worker).collect(),
        profile: Profile::new(0.95, rows, loads(2)),
    })
}

/// 5,000 requests per second on four workers, with service times so spread that some are late.
fn busy(seconds: u64) -> Scenario {
    spread(seconds, 4, "poisson:5000")
}

fn spread(seconds: u64, workers: usize, load: &str) -> Scenario {
    Scenario {
        duration: Micros::from_millis(seconds * 1_000),
        service: ServiceTimes::LogNormal { mean: 0.9, cv: 1.5 },
        ..scenario(pool(workers), load)
    }
}

/// Idle workers take the oldest requests, in batches.
struct Fixed {
    description: Description,
    variant: VariantId,
    /// It faults in every window whose number this divides.
    faults_every: Option<u64>,
    /// It gives arrivals to all workers alike, without windows.
    routes: bool,
}

impl Fixed {
    fn new(name: &str, variant: u32) -> Self {
        Self {
            description: Description {
                name: name.to_owned(),
                version: "1".to_owned(),
                on: Triggers {
                    arrival: true,
                    completion: true,
                    ..Triggers::default()
                },
                ..Description::default()
            },
            variant: VariantId(variant),
            faults_every: None,
            routes: false,
        }
    }

    fn route(&self, workers: usize) -> Route {
        let lane = |worker| Lane {
            worker: WorkerId(worker),
            variant: self.variant,
            exit: ExitId(0),
            weight: 1.0 / workers as f64,
            min_batch: 1,
            max_batch: 8,
            capacity: 1_024,
        };
        Route {
            app: AppId(0),
            lanes: (0..workers as u32).map(lane).collect(),
        }
    }
}

impl Policy for Fixed {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if self
            .faults_every
            .is_some_and(|every| window.id.is_multiple_of(every))
        {
            return Err(PolicyFault::new(FaultKind::Trap, "as told"));
        }
        if self.routes && (window.because.changed || window.because.periodic) {
            plan.routes
                .push(self.route(window.workers.running_variant.len()));
        }
        let mut waiting = window.requests.id.iter().map(|&id| RequestId(id));
        for (at, &running) in window.workers.running_variant.iter().enumerate() {
            let members: Vec<RequestId> = match running {
                IDLE if window.workers.queued[at] == 0 => waiting.by_ref().take(8).collect(),
                _ => Vec::new(),
            };
            if members.is_empty() {
                continue;
            }
            let dispatch = Dispatch {
                worker: WorkerId(at as u32),
                variant: self.variant,
                from_stage: 0,
                to_stage: 1,
                exit: Some(ExitId(0)),
                place: u32::MAX,
                size: 0,
            };
            plan.dispatch(dispatch, members);
        }
        Ok(())
    }
}

/// Runs a canary of a candidate against variant 0.
fn canary(
    scenario: &Scenario,
    seed: u64,
    share: f64,
    rule: CanaryRule,
    candidate: fn() -> Fixed,
) -> CanaryReport {
    canary_of(
        [|| Fixed::new("old", 0), candidate],
        scenario,
        seed,
        share,
        rule,
    )
}

fn canary_of(
    [serving, candidate]: [fn() -> Fixed; 2],
    scenario: &Scenario,
    seed: u64,
    share: f64,
    rule: CanaryRule,
) -> CanaryReport {
    let watch: Arc<Mutex<Option<CanaryWatch>>> = Arc::default();
    let told = Arc::clone(&watch);
    let make = move |catalog: &Catalog| {
        let (canary, watch) = Canary::new(CanaryParts {
            serving: Box::new(serving()),
            baseline: Box::new(serving()),
            candidate: Box::new(candidate()),
            catalog: Arc::new(catalog.clone()),
            share,
            slot: Micros::from_millis(20),
            seed,
            rule,
        });
        *told.lock().unwrap() = Some(watch);
        Ok(Box::new(canary) as Box<dyn Policy>)
    };
    let contender = Contender {
        make: Arc::new(make),
        ..Contender::new("canary", || Fixed::new("unused", 0))
    };
    run(scenario, &contender, seed).unwrap();
    let watch = watch.lock().unwrap().take().unwrap();
    watch.report()
}

fn better() -> Fixed {
    Fixed::new("new", 0)
}

fn worse() -> Fixed {
    Fixed::new("new", 1)
}

/// A tenth of the requests, and 5 % less utility: at least 19 of 20 trials end within 30 s.
#[test]
fn a_candidate_that_is_five_percent_worse_is_rolled_back_within_thirty_seconds() {
    let is_rolled_back = |seconds, seed| {
        let report = canary(&busy(seconds), seed, 0.1, CanaryRule::default(), worse);
        report.verdict == Some(Verdict::RollBack(Why::Worse))
    };
    // Most end long before.
    let trial = |seed| is_rolled_back(8, seed) || is_rolled_back(30, seed);
    let rolled_back = (0..20).filter(|&seed| trial(seed)).count();
    assert!(rolled_back >= 19, "{rolled_back} of 20");
}

/// At most one of a hundred candidates that equal the serving policy is rolled back or promoted.
#[test]
fn an_equal_candidate_is_neither_worse_nor_better() {
    let trial = |seed| {
        let scenario = spread(8, 1, "poisson:1200");
        let report = canary(&scenario, seed, 0.5, CanaryRule::default(), better);
        assert!(report.pairs > 180 || report.verdict.is_some(), "{report:?}");
        report.verdict.is_some()
    };
    let wrong = (100..200).filter(|&seed| trial(seed)).count();
    assert!(wrong <= 1, "{wrong} of 100");
}

#[test]
fn a_better_candidate_is_promoted_and_gets_all_requests() {
    let against_worse = |catalog: &Catalog| {
        let (canary, _) = Canary::new(CanaryParts {
            serving: Box::new(worse()),
            baseline: Box::new(worse()),
            candidate: Box::new(better()),
            catalog: Arc::new(catalog.clone()),
            share: 0.5,
            slot: Micros::from_millis(20),
            seed: 1,
            rule: CanaryRule::default(),
        });
        Ok(Box::new(canary) as Box<dyn Policy>)
    };
    let contender = Contender {
        make: Arc::new(against_worse),
        ..Contender::new("canary", worse)
    };
    let report = run(&busy(20), &contender, 1).unwrap();
    let accuracy = report.total.accuracy_profiled.unwrap();
    // Half of the first seconds are the worse one's.
    assert!(accuracy > 0.893, "{accuracy}");
}

#[test]
fn a_candidate_that_faults_is_rolled_back_and_loses_no_request() {
    let faulty = || Fixed {
        faults_every: Some(7),
        ..better()
    };
    let report = canary(&busy(5), 1, 0.1, CanaryRule::default(), faulty);
    assert_eq!(report.verdict, Some(Verdict::RollBack(Why::Faults)));
    let candidate = report.member(Member::Candidate);
    assert_eq!(candidate.faults, 5);
    assert_eq!(candidate.last_fault.as_deref(), Some("trap: as told"));
    assert_eq!(report.member(Member::Serving).faults, 0);
    // The fallback served the windows that it failed.
    assert!(candidate.arrived - candidate.ended < 50, "{candidate:?}");
}

#[test]
fn a_candidate_that_is_not_worse_is_promoted_on_request() {
    let rule = CanaryRule {
        promote_if: PromoteIf::NotWorse,
        margin: 0.05,
        ..CanaryRule::default()
    };
    let report = canary(&busy(30), 3, 0.5, rule, better);
    assert_eq!(report.verdict, Some(Verdict::Promote(Why::NotWorse)));
}

#[test]
fn members_get_their_shares_and_the_time_is_bounded() {
    let rule = CanaryRule {
        within: Micros::from_millis(4_000),
        ..CanaryRule::default()
    };
    let report = canary(&busy(10), 1, 0.1, rule, better);
    assert_eq!(report.verdict, Some(Verdict::RollBack(Why::Undecided)));
    assert_eq!(report.ran_for.0 / 10_000, 400, "{:?}", report.ran_for);
    let [serving, baseline, candidate] = report.members.map(|member| member.arrived as f64);
    let all = serving + baseline + candidate;
    assert!((baseline / all - 0.1).abs() < 0.01, "{baseline} of {all}");
    assert!((candidate / all - 0.1).abs() < 0.01, "{candidate} of {all}");
}

fn router(variant: u32) -> Fixed {
    let mut router = Fixed {
        routes: true,
        ..Fixed::new("router", variant)
    };
    // Its routes are lost with a catalog.
    router.description.every = Some(Micros::from_millis(500));
    router.description.when_empty = true;
    router
}

/// A route gives out arrivals without a window: those of the member on duty are in force.
#[test]
fn routers_are_compared_as_planners_are() {
    let pairs: [[fn() -> Fixed; 2]; 3] = [
        [|| router(0), || router(1)],
        [|| router(0), || Fixed::new("planner", 1)],
        [|| Fixed::new("planner", 0), || router(1)],
    ];
    let scenario = spread(30, 4, "poisson:3000");
    for (at, pair) in pairs.into_iter().enumerate() {
        let report = canary_of(pair, &scenario, 1, 0.3, CanaryRule::default());
        let verdict = Some(Verdict::RollBack(Why::Worse));
        assert_eq!(report.verdict, verdict, "{at}: {report:?}");
        for member in [Member::Baseline, Member::Candidate] {
            let quality = report.member(member).quality.unwrap();
            let own = QUALITIES[usize::from(member == Member::Candidate)];
            assert!((quality - own).abs() < 0.002, "{at}: {report:?}");
        }
    }
}

#[test]
fn equal_routers_are_neither_worse_nor_better() {
    let trial = |seed| {
        let scenario = spread(8, 1, "poisson:700");
        let routers: [fn() -> Fixed; 2] = [|| router(0), || router(0)];
        let report = canary_of(routers, &scenario, seed, 0.5, CanaryRule::default());
        assert!(report.pairs > 180 || report.verdict.is_some(), "{report:?}");
        report.verdict.is_some()
    };
    let wrong = (0..40).filter(|&seed| trial(seed)).count();
    assert!(wrong <= 1, "{wrong} of 40");
}
