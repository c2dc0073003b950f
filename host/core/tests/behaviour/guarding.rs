//! Which policy serves when another one fails, and the state that survives a swap.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Catalog;
use switchyard_core::event::{Event, Notice};
use switchyard_core::guard::{FaultLimit, REJECTING_WINDOWS};
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Lane, Plan, Route};
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault, Triggers};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

use crate::bed::chaos::Useless;
use crate::bed::driver::Driver;
use crate::bed::script::{install, whole};
use crate::bed::{catalog, request};

fn fcfs(name: &str) -> Event {
    install(name, |window, plan| {
        if let Some(&id) = window.requests.id.first() {
            whole(plan, 0, 0, &[id]);
        }
    })
}

fn served_by(driver: &Driver) -> Vec<String> {
    let decided =
        |reply: &switchyard_core::event::Reply| reply.decided.as_ref().unwrap().by.to_string();
    driver.replies.values().map(decided).collect()
}

#[test]
fn the_last_good_version_serves_when_the_new_one_fails() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(fcfs("good"));
    let faulty = Useless::faulting(FaultKind::Trap);
    driver.give(Event::PolicyChanged(Box::new(faulty)));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.drain();
    assert_eq!(served_by(&driver), ["good@1"]);
}

/// Takes longer than its budget for more than `most` requests, and decides nothing.
struct Slow {
    description: Description,
    most: usize,
    shown: Arc<Mutex<Vec<Vec<u64>>>>,
}

impl Policy for Slow {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, _: &mut Plan) -> Result<(), PolicyFault> {
        self.shown.lock().unwrap().push(window.requests.id.clone());
        match window.len() > self.most {
            true => Err(PolicyFault::new(FaultKind::Overrun, "too many requests")),
            false => Ok(()),
        }
    }
}

/// Lets 1,000 requests arrive at this interval, each due before the ones before it.
fn flood_slow(most: usize, gap_us: u64) -> (Driver, Vec<Vec<u64>>) {
    let shown = Arc::default();
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(Event::PolicyChanged(Box::new(Slow {
        description: Useless::silent().description().clone(),
        most,
        shown: Arc::clone(&shown),
    })));
    for id in 1..=1_000 {
        driver.advance_to(Time(id * gap_us));
        driver.arrive(request(
            id,
            0,
            driver.now,
            1_000_000_000 - id - driver.now.0,
        ));
    }
    // Arrivals alone open a window per millisecond by now.
    driver.advance_to(driver.now + Micros(1_000));
    let shown = shown.lock().unwrap().clone();
    (driver, shown)
}

#[test]
fn a_policy_that_overruns_past_capacity_stays_and_sees_the_requests_due_first() {
    let (driver, shown) = flood_slow(300, 0);
    assert!(driver.scheduler.policy_label().starts_with("useless@"));
    assert_eq!(driver.notices.len(), 2, "installed, and one overrun");
    let last = shown.last().unwrap();
    assert_eq!(
        *last,
        Vec::from_iter(1_000 - 74..=1_000),
        "a quarter of 301"
    );
}

#[test]
fn a_policy_that_overruns_with_few_requests_is_taken_off() {
    for gap_us in [0, 1, 100, 1_000] {
        let (driver, _) = flood_slow(0, gap_us);
        let label = driver.scheduler.policy_label();
        assert!(label.starts_with("edf-fallback@"), "{gap_us}: {label}");
    }
}

#[test]
fn a_policy_that_fails_too_often_is_taken_off_with_a_notice() {
    let config = SchedulerConfig {
        fault_limit: FaultLimit {
            faults: 3,
            windows: 10,
        },
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(catalog(1), config);
    let faulty = Useless::faulting(FaultKind::Memory);
    driver.give(Event::PolicyChanged(Box::new(faulty)));
    for id in 1..=6 {
        driver.arrive(request(id, 0, driver.now, 50_000));
        driver.drain();
    }
    let taken_off: Vec<_> = driver
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::PolicyFaulted(faulted) => Some(faulted.taken_off),
            _ => None,
        })
        .collect();
    assert_eq!(taken_off, [false, false, true]);
    assert_eq!(driver.replies.len(), 6);
    assert!(driver.scheduler.policy_label().starts_with("edf-fallback@"));
    assert!(
        served_by(&driver)
            .iter()
            .all(|by| by.starts_with("edf-fallback@"))
    );
}

#[test]
fn while_a_periodic_policy_fails_the_fallback_does_not_wait_for_its_period() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(Event::PolicyChanged(Box::new(
        Useless::faulting(FaultKind::Trap).every(10_000),
    )));
    driver.arrive(request(1, 0, driver.now, 20_000));
    driver.advance_to(Time(10_000));
    let faulted_at = driver.now;
    driver.arrive(request(2, 0, faulted_at, 20_000));
    driver.drain();
    // Served as soon as the first one ended, not a period later.
    let (started, _) = driver.runs[1].clone();
    assert!(started < faulted_at + Micros(10_000), "{started}");
}

/// A driver sleeps until `next_wakeup`; nothing else may be needed to serve the request.
#[test]
fn a_sleeping_driver_is_woken_for_a_starving_request() {
    let config = SchedulerConfig::default();
    let patience = config.patience;
    let mut driver = Driver::new(catalog(1), config);
    driver.give(Event::PolicyChanged(Box::new(Useless::silent())));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    let wake = driver.scheduler.next_wakeup().expect("a request waits");
    assert_eq!(wake, Time(20_000) + patience + Micros(1));
    driver.advance_to(wake);
    assert_eq!(driver.runs.len(), 1);
    assert_eq!(driver.runs[0].0, wake);
}

#[test]
fn state_goes_from_the_old_version_to_the_new_one() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(fcfs("old"));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    driver.give(Event::PolicyChanged(Box::new(
        Useless::silent().restoring(Arc::clone(&got)),
    )));
    let windows_seen: u64 = 2;
    assert_eq!(*got.lock().unwrap(), windows_seen.to_le_bytes());
    let switched = driver.notices.iter().any(|notice| {
        matches!(notice, Notice::PolicySwitched { from, to, state_lost: None }
            if from.as_ref() == "old@1" && to.as_ref() == "useless@1")
    });
    assert!(switched, "{:?}", driver.notices);
}

#[test]
fn other_code_of_the_active_policy_takes_its_state_and_leaves_the_last_good_version() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(fcfs("good"));
    driver.give(fcfs("useless"));
    driver.arrive(request(1, 0, Time::ZERO, 20_000));
    let windows_seen: u64 = 3;
    let recompiled = Useless::faulting(FaultKind::Trap).restoring(Arc::clone(&got));
    driver.give(Event::PolicyRecompiled(Box::new(recompiled)));
    assert_eq!(*got.lock().unwrap(), windows_seen.to_le_bytes());
    driver.drain();
    driver.arrive(request(2, 0, driver.now, 20_000));
    driver.drain();
    assert_eq!(served_by(&driver), ["useless@1", "good@1"]);
}

#[test]
fn other_code_of_a_policy_that_serves_no_longer_is_dropped() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    let recompiled = || Event::PolicyRecompiled(Box::new(Useless::silent()));
    driver.give(recompiled());
    assert!(driver.scheduler.policy_label().starts_with("edf-fallback@"));
    driver.give(fcfs("next"));
    driver.give(recompiled());
    assert_eq!(driver.scheduler.policy_label().as_ref(), "next@1");
}

#[test]
fn a_swap_under_load_loses_nothing() {
    let mut driver = Driver::new(catalog(2), SchedulerConfig::default());
    for id in 1..=200 {
        if id % 10 == 0 {
            driver.give(fcfs(&format!("version-{id}")));
        }
        driver.arrive(request(id, 0, driver.now, 5_000));
        driver.advance_to(driver.now + Micros(700));
    }
    driver.drain();
    driver.check_empty();
}

/// First come, first served that faults when it is told to.
struct Fragile {
    description: Description,
    faults: Arc<AtomicBool>,
}

impl Policy for Fragile {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if self.faults.swap(false, Ordering::Relaxed) {
            return Err(PolicyFault::new(FaultKind::Trap, "told to"));
        }
        if let Some(&id) = window.requests.id.first() {
            whole(plan, 0, 0, &[id]);
        }
        Ok(())
    }
}

fn fragile(faults: &Arc<AtomicBool>) -> Event {
    Event::PolicyChanged(Box::new(Fragile {
        description: Description {
            name: "fragile".to_owned(),
            version: "1".to_owned(),
            on: Triggers {
                arrival: true,
                ..Triggers::default()
            },
            ..Description::default()
        },
        faults: Arc::clone(faults),
    }))
}

/// Serves `requests`, one each `gap`, and lets the policy fault at every `nth`. Returns whether
/// it was taken off.
fn is_taken_off(requests: u64, gap: Micros, nth: u64) -> bool {
    let faults = Arc::new(AtomicBool::new(false));
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(fragile(&faults));
    for id in 1..=requests {
        driver.advance_to(driver.now + gap);
        faults.store(id % nth == 0, Ordering::Relaxed);
        driver.arrive(request(id, 0, driver.now, 20_000));
    }
    !driver.scheduler.policy_label().starts_with("fragile")
}

/// Four faults in a hundred windows are below the limit, and each may cost a restart.
#[test]
fn faults_just_below_the_limit_take_a_policy_off_in_the_end() {
    let gap = Micros(1_500);
    assert!(is_taken_off(26 * 25, gap, 26));
    assert!(!is_taken_off(26 * 15, gap, 26), "a few faults are forgiven");
}

#[test]
fn a_fault_a_minute_never_takes_a_policy_off() {
    let gap = Micros(60_000_000 / 26);
    assert!(!is_taken_off(26 * 300, gap, 26));
}

/// A policy that always faults in front of one that faults at this request: the policies that are
/// taken off, and whether the notice means the active one.
fn losses(at: u64) -> Vec<(String, bool)> {
    let faults = Arc::new(AtomicBool::new(false));
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(fragile(&faults));
    let faulty = Useless::faulting(FaultKind::Trap);
    driver.give(Event::PolicyChanged(Box::new(faulty)));
    for id in 1..=12 {
        faults.store(id == at, Ordering::Relaxed);
        driver.arrive(request(id, 0, driver.now, 20_000));
        driver.drain();
    }
    let faulted = driver.notices.iter().filter_map(|notice| match notice {
        Notice::PolicyFaulted(faulted) if faulted.taken_off => Some(faulted),
        _ => None,
    });
    faulted
        .map(|faulted| (faulted.policy.to_string(), faulted.is_active))
        .collect()
}

#[test]
fn a_last_good_version_is_taken_off_without_the_active_policy() {
    let (fragile, useless) = ("fragile@1".to_owned(), "useless@1".to_owned());
    let behind = [(fragile.clone(), false), (useless.clone(), true)];
    assert_eq!(losses(1), behind);
    assert_eq!(losses(10), [(useless, true), (fragile, true)]);
}

fn route(app: u32, variant: u32) -> Route {
    Route {
        app: AppId(app),
        lanes: vec![Lane {
            worker: WorkerId(0),
            variant: VariantId(variant),
            exit: ExitId(0),
            weight: 1.0,
            min_batch: 1,
            max_batch: 8,
            capacity: 64,
        }],
    }
}

/// Routes `heart` in its first window, and faults in all that follow.
struct RoutesOnce {
    description: Description,
    has_routed: bool,
}

impl Policy for RoutesOnce {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, _: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if std::mem::replace(&mut self.has_routed, true) {
            return Err(PolicyFault::new(FaultKind::Trap, "after its first window"));
        }
        plan.routes.push(route(0, 0));
        Ok(())
    }
}

#[test]
fn the_routes_of_a_policy_end_when_it_is_taken_off() {
    let changed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&changed);
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(install("good", move |window, plan| {
        seen.lock().unwrap().push(window.because.changed);
        plan.routes.push(route(1, 2));
        if let Some(&id) = window.requests.id.first() {
            whole(plan, 0, 0, &[id]);
        }
    }));
    driver.give(Event::PolicyChanged(Box::new(RoutesOnce {
        description: Description {
            name: "routes-once".to_owned(),
            version: "1".to_owned(),
            every: Some(Micros(1_000)),
            when_empty: true,
            ..Description::default()
        },
        has_routed: false,
    })));
    driver.advance_to(Time(10_000));
    assert_eq!(driver.scheduler.policy_label().as_ref(), "good@1");
    // The last window is the successor's own, after five that the other failed.
    let expected = [true, false, false, false, false, false, true];
    assert_eq!(*changed.lock().unwrap(), expected);
    driver.arrive(request(1, 0, driver.now, 20_000));
    driver.arrive(request(2, 1, driver.now, 50_000));
    driver.drain();
    assert_eq!(served_by(&driver), ["good@1", "host"]);
}

/// A policy that rejects everything.
fn rejecting() -> Event {
    install("refuses", |window, plan| {
        let ids = window.requests.id.iter();
        plan.rejects.extend(ids.map(|&id| RequestId(id)));
    })
}

fn rejecting_faults(driver: &Driver) -> usize {
    let faults = driver.notices.iter().filter(
        |notice| matches!(notice, Notice::PolicyFaulted(f) if f.fault.kind == FaultKind::Rejecting),
    );
    faults.count()
}

#[test]
fn rejecting_everything_while_a_worker_is_idle_is_a_fault() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(rejecting());
    let most = u64::from(REJECTING_WINDOWS);
    for id in 1..=most {
        driver.arrive(request(id, 0, driver.now, 20_000));
    }
    assert_eq!(rejecting_faults(&driver), 0, "a burst is no proof");
    for id in most + 1..=most + 20 {
        driver.arrive(request(id, 0, driver.now, 1_000_000));
        driver.advance_to(driver.now + Micros(10_000));
    }
    assert_eq!(rejecting_faults(&driver), 5);
    assert!(driver.scheduler.policy_label().starts_with("edf-fallback@"));
    let answered = driver.scheduler.ledger().by_outcome()["in_time"];
    assert_eq!(answered, 15, "the fallback answers");
}

#[test]
fn rejecting_requests_that_would_be_late_or_while_workers_are_busy_is_no_fault() {
    let mut driver = Driver::new(catalog(1), SchedulerConfig::default());
    driver.give(rejecting());
    // The quickest answer takes 1 ms after a load of 500 us.
    for id in 1..=200 {
        driver.arrive(request(id, 0, driver.now, 1_499));
    }
    assert_eq!(rejecting_faults(&driver), 0);

    driver.give(install("one-at-a-time", |window, plan| {
        for &id in &window.requests.id {
            match window.workers.running_variant[0] == switchyard_core::window::IDLE {
                true => whole(plan, 0, 0, &[id]),
                false => plan.rejects.push(RequestId(id)),
            }
        }
    }));
    for id in 201..=600 {
        driver.arrive(request(id, 0, driver.now, 20_000));
    }
    assert_eq!(rejecting_faults(&driver), 0);
}
