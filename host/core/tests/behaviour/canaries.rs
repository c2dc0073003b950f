//! Canaries: their wakes while nothing ends, and their routes once another policy took over.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::canary::{Canary, CanaryParts, CanaryRule, CanaryWatch, Verdict, Why};
use switchyard_core::catalog::Catalog;
use switchyard_core::event::Event;
use switchyard_core::guard::HOST_LABEL;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Plan, Route};
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

use crate::bed::chaos::Useless;
use crate::bed::driver::Driver;
use crate::bed::{catalog, request};

/// Routes `heart` to the lane of one variant.
struct Router {
    description: Description,
    variant: VariantId,
}

impl Router {
    fn to(variant: u32) -> Box<dyn Policy> {
        Box::new(Self {
            description: Description {
                name: "router".to_owned(),
                version: "1".to_owned(),
                ..Description::default()
            },
            variant: VariantId(variant),
        })
    }
}

impl Policy for Router {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if window.because.changed {
            plan.routes.push(Route {
                app: AppId(0),
                lanes: vec![Lane {
                    worker: WorkerId(0),
                    variant: self.variant,
                    exit: ExitId(0),
                    weight: 1.0,
                    min_batch: 1,
                    max_batch: 8,
                    capacity: 64,
                }],
            });
        }
        Ok(())
    }
}

/// A driver with a canary whose rounds last 20 ms: one half is the baseline's, one the candidate's.
fn canary(members: [Box<dyn Policy>; 3], rule: CanaryRule) -> (Driver, CanaryWatch) {
    let catalog = catalog(1);
    let [serving, baseline, candidate] = members;
    let (canary, watch) = Canary::new(CanaryParts {
        serving,
        baseline,
        candidate,
        catalog: Arc::clone(&catalog),
        share: 0.5,
        slot: Micros::from_millis(10),
        seed: 1,
        rule,
    });
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    driver.give(Event::PolicyChanged(Box::new(canary)));
    (driver, watch)
}

fn silent() -> [Box<dyn Policy>; 3] {
    [(); 3].map(|()| Box::new(Useless::silent()) as Box<dyn Policy>)
}

#[test]
fn a_round_that_is_over_waits_for_its_requests_without_windows() {
    let (mut driver, _) = canary(silent(), CanaryRule::default());
    driver.arrive(request(1, 0, Time::ZERO, 10_000_000));
    driver.advance_to(Time(2_000_000));
    let windows = driver.scheduler.windows_opened();
    assert!(windows < 10, "{windows} windows");
}

#[test]
fn an_order_ends_the_wakes_of_a_canary() {
    let rule = CanaryRule {
        within: Micros::from_millis(50),
        ..CanaryRule::default()
    };
    let (mut driver, watch) = canary(silent(), rule);
    watch.order(Verdict::RollBack(Why::Ordered));
    driver.advance_to(Time(1_000_000));
    let windows = driver.scheduler.windows_opened();
    assert!(windows < 10, "{windows} windows");
}

/// Requests of `heart`, one per millisecond over some rounds: the decisions about them, and their variants.
fn served(driver: &mut Driver, ids: std::ops::Range<u64>) -> BTreeSet<(String, u32)> {
    let before = driver.runs.len();
    for id in ids.clone() {
        driver.advance_to(driver.now + Micros(1_000));
        driver.arrive(request(id, 0, driver.now, 100_000));
    }
    driver.drain();
    driver.check_empty();
    let decided = driver.replies.values().filter_map(|reply| {
        let decided = reply.decided.as_ref()?;
        let is_own = ids.contains(&reply.request.0);
        is_own.then(|| decided.by.to_string())
    });
    let variants: BTreeSet<u32> = driver.runs[before..]
        .iter()
        .map(|(_, run)| run.variant.0)
        .collect();
    decided
        .flat_map(|by| variants.iter().map(move |&variant| (by.clone(), variant)))
        .collect()
}

#[test]
fn the_serving_policy_alone_routes_once_another_policy_took_over() {
    let members = [Router::to(0), Router::to(0), Router::to(1)];
    let (mut driver, _) = canary(members, CanaryRule::default());
    driver.advance_to(Time(35_000));
    let faulty = Useless::faulting(FaultKind::Trap);
    driver.give(Event::PolicyChanged(Box::new(faulty)));
    let of_serving = BTreeSet::from([(HOST_LABEL.to_owned(), 0)]);
    assert_eq!(served(&mut driver, 1..60), of_serving);
    // Nothing routes the other app, so that the faulty policy is asked and taken off.
    for id in 60..66 {
        driver.arrive(request(id, 1, driver.now, 20_000));
    }
    driver.drain();
    let label = driver.scheduler.policy_label();
    assert!(label.starts_with("router@1 or "), "{label}");
    assert_eq!(served(&mut driver, 66..120), of_serving);
}
