//! Past capacity requests are still answered in time, whatever the policy.

use std::sync::{Arc, Mutex};

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Late;
use switchyard_core::cost::Cost;
use switchyard_core::event::{Event, Launch, Notice};
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{FaultKind, WindowFields};
use switchyard_core::request::{DroppedFrom, Outcome, Rejection};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, Window};

use crate::bed::driver::Driver;
use crate::bed::script::{install, whole};
use crate::bed::{late_catalog, request};

fn late_driver(late: Late) -> Driver {
    Driver::new(late_catalog(1, late), SchedulerConfig::default())
}

/// First come, first served, on the large variant: deadlines are ignored.
fn ignore_deadlines(window: &Window, plan: &mut Plan) {
    serve_oldest(window, plan, (1, 3, 1));
}

/// First come, first served, on the small variant.
fn serve_on_small(window: &Window, plan: &mut Plan) {
    serve_oldest(window, plan, (0, 1, 0));
}

/// The oldest requests of one app; `heart` by this variant, number of stages and exit.
fn serve_oldest(window: &Window, plan: &mut Plan, heart: (u32, u32, u32)) {
    if window.workers.running_variant[0] != IDLE || window.is_empty() {
        return;
    }
    let app = window.requests.app[0];
    let same = window.requests.id.iter().zip(&window.requests.app);
    let oldest: Vec<_> = same.filter(|(_, a)| **a == app).take(8).collect();
    let (variant, stages, exit) = if app == 0 { heart } else { (2, 1, 0) };
    let dispatch = Dispatch {
        worker: WorkerId(0),
        variant: VariantId(variant),
        from_stage: 0,
        to_stage: stages,
        exit: Some(ExitId(exit)),
        place: u32::MAX,
        size: 0,
    };
    plan.dispatch(dispatch, oldest.into_iter().map(|(&id, _)| RequestId(id)));
}

/// Answers in time per second at a steady rate of arrivals, after half a second of it.
fn goodput(driver: &mut Driver, gap_us: u64) -> f64 {
    let seconds = 2;
    for i in 0..seconds * 1_000_000 / gap_us {
        driver.advance_to(Time(i * gap_us));
        driver.arrive(request(i + 1, 0, driver.now, 20_000));
    }
    let in_time = driver.replies.values().filter(|reply| {
        let is_counted = reply.request.0 * gap_us > 500_000;
        is_counted && matches!(reply.outcome, Outcome::Answered { in_time: true, .. })
    });
    in_time.count() as f64 / (seconds as f64 - 0.5)
}

/// At multiples of the small variant's 4,000 per second.
fn curve(late: Late, policy: Option<fn(&Window, &mut Plan)>) -> Vec<f64> {
    let gaps = [280, 210, 125, 50, 25];
    let at = |gap| {
        let mut driver = late_driver(late);
        if let Some(policy) = policy {
            driver.give(install("policy", policy));
        }
        goodput(&mut driver, gap)
    };
    gaps.into_iter().map(at).collect()
}

fn assert_flat(curve: &[f64]) {
    let peak = curve.iter().copied().fold(0.0, f64::max);
    for goodput in &curve[1..] {
        assert!(*goodput >= 0.9 * peak, "{curve:?}");
    }
}

#[test]
fn the_fallback_keeps_its_goodput_past_capacity() {
    let shed = curve(Late::Shed, None);
    assert_flat(&shed);
    assert!(shed[4] > 3_500.0, "{shed:?}");
}

#[test]
fn the_fallback_serves_late_requests_last() {
    // They are served all the same: the queue grows to its bound, and half of the time goes there.
    let serve = curve(Late::Serve, None);
    assert!(serve.iter().all(|goodput| *goodput > 1_500.0), "{serve:?}");
}

#[test]
fn a_policy_that_ignores_deadlines_keeps_its_goodput_past_capacity() {
    let unguarded = curve(Late::Serve, Some(ignore_deadlines));
    assert!(unguarded[4] < 100.0, "{unguarded:?}");
    assert_flat(&curve(Late::Shed, Some(ignore_deadlines)));
}

#[test]
fn requests_that_are_served_last_cost_the_others_nothing() {
    assert_flat(&curve(Late::Last, Some(ignore_deadlines)));
}

#[test]
fn rows_that_became_infeasible_leave_a_batch_before_it_starts() {
    let mut driver = late_driver(Late::Shed);
    driver.give(install("script", |window, plan| {
        match window.requests.id.as_slice() {
            [1] => whole(plan, 0, 2, &[1]),
            // Three rows take 3,858 us, from 3,000 us on.
            [2, 3, 4] => whole(plan, 0, 2, &[2, 3, 4]),
            _ => {}
        }
    }));
    driver.arrive(request(1, 1, Time::ZERO, 20_000));
    for (id, slack_us) in [(2, 6_500), (3, 20_000), (4, 20_000)] {
        driver.arrive(request(id, 1, Time::ZERO, slack_us));
    }
    driver.drain();
    assert_eq!(driver.runs[1].1.requests.len(), 2, "request 2 left it");
    let outcome = |id| &driver.replies[&RequestId(id)].outcome;
    assert!(matches!(
        outcome(3),
        Outcome::Answered { in_time: true, .. }
    ));
    // It was pending again, until no variant could answer it in time.
    assert_eq!(outcome(2), &Outcome::Dropped(DroppedFrom::Pending));
}

#[test]
fn a_deadline_that_no_variant_can_meet_is_refused_at_once() {
    let mut driver = late_driver(Late::Shed);
    driver.arrive(request(1, 1, Time::ZERO, 20_000));
    driver.arrive(request(2, 1, Time::ZERO, 2_999));
    let rejected = Outcome::Rejected(Rejection::DeadlineTooShort);
    assert_eq!(driver.replies[&RequestId(2)].outcome, rejected);
}

#[test]
fn an_idle_pool_tries_a_hopeless_request_now_and_then() {
    let mut driver = late_driver(Late::Shed);
    driver.arrive(request(1, 1, Time::ZERO, 2_999));
    driver.drain();
    let outcome = &driver.replies[&RequestId(1)].outcome;
    assert!(matches!(outcome, Outcome::Answered { in_time: false, .. }));
    driver.arrive(request(2, 1, driver.now, 2_999));
    let rejected = Outcome::Rejected(Rejection::DeadlineTooShort);
    assert_eq!(
        driver.replies[&RequestId(2)].outcome,
        rejected,
        "once a second"
    );
    driver.advance_to(Time(1_100_000));
    driver.arrive(request(3, 1, driver.now, 2_999));
    driver.drain();
    let outcome = &driver.replies[&RequestId(3)].outcome;
    assert!(matches!(outcome, Outcome::Answered { .. }));
}

#[test]
fn admission_bounds_the_queue_by_time() {
    let mut driver = late_driver(Late::Shed);
    // 8 requests in 2 ms at best: 20 ms have room for 80.
    for id in 1..=200 {
        driver.arrive(request(id, 0, Time::ZERO, 20_000));
    }
    assert!(driver.scheduler.live() <= 90, "{}", driver.scheduler.live());
    let overloaded = Outcome::Rejected(Rejection::Overloaded);
    assert_eq!(driver.replies[&RequestId(200)].outcome, overloaded);
    // Ten times the time has room for more.
    driver.arrive(request(201, 0, Time::ZERO, 200_000));
    assert!(!driver.replies.contains_key(&RequestId(201)));
}

#[test]
fn an_app_that_floods_leaves_the_others_their_share() {
    let mut driver = late_driver(Late::Shed);
    driver.give(install("policy", ignore_deadlines));
    let (mut id, mut asked, mut second) = (0, 0, Vec::new());
    for step in 0..80_000_u64 {
        driver.advance_to(Time(step * 50));
        id += 1;
        driver.arrive(request(id, 0, driver.now, 20_000));
        // The other app asks for a third of the worker.
        if step % 200 == 0 {
            id += 1;
            driver.arrive(request(id, 1, driver.now, 20_000));
            asked += 1;
            second.push(id);
        }
    }
    driver.drain();
    let in_time = second.iter().filter(|&&id| {
        let outcome = &driver.replies[&RequestId(id)].outcome;
        matches!(outcome, Outcome::Answered { in_time: true, .. })
    });
    let share = in_time.count() as f64 / f64::from(asked);
    assert!(share > 0.9, "{share}");
    // The reason names the app that is at fault, and that one only.
    let above = Outcome::Rejected(Rejection::AboveShare);
    let refused = |id: &u64| driver.replies[&RequestId(*id)].outcome == above;
    assert!((1..=id).filter(refused).count() > 1_000);
    assert!(!second.iter().any(refused));
}

#[test]
fn late_requests_end_last_but_they_end() {
    let mut driver = late_driver(Late::Last);
    for id in 1..=100 {
        driver.arrive(request(id, 1, Time::ZERO, 20_000));
    }
    driver.drain();
    driver.check_empty();
    let late = driver
        .replies
        .values()
        .filter(|reply| matches!(reply.outcome, Outcome::Answered { in_time: false, .. }));
    assert!(late.count() > 20);
}

/// A pool that follows latencies, with all variants resident: batches that load one say nothing.
fn following_driver(late: Late, slowdown: fn(&Launch) -> f64) -> Driver {
    let config = SchedulerConfig {
        follows_latencies: true,
        ..SchedulerConfig::default()
    };
    let mut driver = Driver::new(late_catalog(1, late), config);
    driver.slowdown = slowdown;
    driver.give(Event::Residency {
        worker: WorkerId(0),
        resident: (0..3).map(VariantId).collect(),
        free_bytes: 0,
    });
    driver
}

/// A pool whose batches take twice the profile, as it has seen 40 times. `small` takes 1 ms by it.
fn slow_driver(late: Late) -> Driver {
    let mut driver = following_driver(late, |_| 2.0);
    for id in 1..=40 {
        driver.arrive(request(id, 1, driver.now, 20_000));
        driver.advance_to(driver.now + Micros(10_000));
    }
    driver
}

#[test]
fn busy_until_follows_batches_that_take_longer() {
    let mut driver = slow_driver(Late::Serve);
    let shown = Arc::new(Mutex::new(Vec::new()));
    let busy_until = Arc::clone(&shown);
    driver.give(install("script", move |window, plan| {
        busy_until
            .lock()
            .unwrap()
            .push(window.workers.busy_until[0]);
        if let Some(&id) = window.requests.id.first() {
            whole(plan, 0, 0, &[id]);
        }
    }));
    let start = driver.now;
    driver.arrive(request(50, 0, start, 20_000));
    shown.lock().unwrap().clear();
    driver.arrive(request(51, 0, start, 20_000));
    assert_eq!(shown.lock().unwrap().first(), Some(&(start.0 + 2_000)));
}

#[test]
fn admission_follows_batches_that_take_longer() {
    let mut driver = slow_driver(Late::Shed);
    // 3 ms by the profile, 6 ms as observed.
    driver.arrive(request(41, 1, driver.now, 5_000));
    driver.arrive(request(42, 1, driver.now, 5_000));
    let rejected = Outcome::Rejected(Rejection::DeadlineTooShort);
    assert_eq!(driver.replies[&RequestId(42)].outcome, rejected);
    driver.arrive(request(43, 1, driver.now, 20_000));
    assert!(!driver.replies.contains_key(&RequestId(43)));
}

/// The slowdown that a policy would be shown now.
fn slowdown(driver: &mut Driver) -> f64 {
    let mut window = Window::default();
    let now = driver.now;
    driver
        .scheduler
        .look(now, WindowFields::default(), &mut window);
    window.slowdown[0].ratio()
}

/// Batches that are profiled at 200 ms end each 1.2 s.
#[test]
fn batches_that_take_longer_than_a_second_have_a_slowdown() {
    let mut driver = following_driver(Late::Serve, |_| 6.0);
    let long = |id, now| {
        let mut request = request(id, 1, now, 10_000_000);
        request.cost = Cost::rows(460);
        request
    };
    for id in 1..=12 {
        let start = driver.now;
        driver.arrive(long(id, start));
        driver.advance_to(start + Micros::from_millis(1_190));
        assert_eq!(driver.scheduler.live(), 1, "its batch runs");
        let shown = slowdown(&mut driver);
        assert_eq!(shown > 5.9, id > 8, "{shown} in batch {id}");
        driver.advance_to(start + Micros::from_millis(1_200));
        assert_eq!(driver.scheduler.live(), 0);
    }
    driver.advance_to(driver.now + Micros::from_millis(900));
    assert!(slowdown(&mut driver) > 5.9);
    driver.advance_to(driver.now + Micros::from_millis(101));
    assert_eq!(slowdown(&mut driver), 1.0, "no batch for a second");
    // The next batch is the first one of eight.
    driver.arrive(long(13, driver.now));
    for _ in 0..3 {
        driver.advance_to(driver.now + Micros::from_millis(590));
        assert_eq!(slowdown(&mut driver), 1.0);
    }
    driver.check_empty();
}

#[test]
fn an_app_is_served_again_after_batches_of_another_one_were_slow() {
    let slowdown = |launch: &Launch| match launch.variant {
        VariantId(0) => 8.0,
        _ => 1.0,
    };
    let mut driver = following_driver(Late::Shed, slowdown);
    driver.give(install("policy", serve_on_small));
    for id in 1..=40 {
        driver.arrive(request(id, 0, driver.now, 20_000));
        driver.advance_to(driver.now + Micros(10_000));
    }
    // This policy serves only requests that can be in time at the slowdown that it is shown.
    driver.give(install("careful", |window, plan| {
        let takes = 3_000.0 * window.slowdown[0].ratio();
        let is_hopeless = |deadline: &u64| window.now + Micros(takes as u64) > Time(*deadline);
        if !window.requests.deadline.first().is_some_and(is_hopeless) {
            serve_on_small(window, plan);
        }
    }));
    let mut later = Vec::new();
    for id in 100..1_100 {
        driver.advance_to(Time(id * 20_000));
        driver.arrive(request(id, 1, driver.now, 20_000));
        if driver.now > Time(8_000_000) {
            later.push(id);
        }
    }
    driver.drain();
    let in_time = later.iter().filter(|&&id| {
        let outcome = &driver.replies[&RequestId(id)].outcome;
        matches!(outcome, Outcome::Answered { in_time: true, .. })
    });
    let share = in_time.count() as f64 / later.len() as f64;
    assert!(share > 0.99, "{share}");
}

/// The share of costly requests that are answered in time in the last 10 of 30 seconds, next to short
/// ones. They take 6 ms by the profile.
fn share_of_costly(slowdown: fn(&Launch) -> f64, short_gap_us: u64, slack_us: u64) -> f64 {
    let mut driver = following_driver(Late::Shed, slowdown);
    driver.give(install("policy", serve_on_small));
    let (mut id, mut costly) = (0, Vec::new());
    for step in 0..30_000_000 / short_gap_us {
        driver.advance_to(Time(step * short_gap_us));
        id += 1;
        driver.arrive(request(id, 0, driver.now, 20_000));
        if step % 400 == 0 {
            id += 1;
            let mut arriving = request(id, 1, driver.now, slack_us);
            arriving.cost = Cost::rows(8);
            driver.arrive(arriving);
            if driver.now >= Time(20_000_000) {
                costly.push(id);
            }
        }
    }
    driver.drain();
    let in_time = costly.iter().filter(|&&id| {
        let outcome = &driver.replies[&RequestId(id)].outcome;
        matches!(outcome, Outcome::Answered { in_time: true, .. })
    });
    in_time.count() as f64 / costly.len() as f64
}

#[test]
fn costly_requests_are_served_next_to_short_ones_although_the_profile_is_too_slow() {
    let share = share_of_costly(|_| 0.25, 250, 2_900);
    assert!(share > 0.9, "{share}");
}

#[test]
fn costly_requests_are_served_although_the_profile_is_too_slow_for_them_alone() {
    let slowdown = |launch: &Launch| match launch.variant {
        VariantId(2) => 0.25,
        _ => 1.0,
    };
    let share = share_of_costly(slowdown, 1_200, 4_900);
    assert!(share > 0.9, "{share}");
}

#[test]
fn requests_that_a_policy_would_let_be_lost_are_served_by_the_fallback() {
    let mut driver = late_driver(Late::Shed);
    driver.give(install("idler", |_, _| {}));
    for step in 0..5_000 {
        driver.advance_to(Time(step * 2_000));
        driver.arrive(request(step + 1, 0, driver.now, 20_000));
    }
    driver.drain();
    let in_time = driver
        .replies
        .values()
        .filter(|reply| matches!(reply.outcome, Outcome::Answered { in_time: true, .. }));
    let share = in_time.count() as f64 / 5_000.0;
    assert!(share > 0.85, "{share}");
    let faults = driver.notices.iter().filter(|notice| {
        matches!(notice, Notice::PolicyFaulted(faulted) if faulted.fault.kind == FaultKind::Starved)
    });
    assert!(faults.count() >= 5, "one in `patience`");
}

/// The second worker has too little memory for `fall`. The first one runs a batch of 29 ms.
fn with_a_small_worker() -> Driver {
    let mut catalog = late_catalog(2, Late::Shed);
    let changed = Arc::make_mut(&mut catalog);
    changed.variants[2].memory_bytes = 2_000;
    changed.workers[1].memory_bytes = 1_500;
    let mut driver = Driver::new(catalog, SchedulerConfig::default());
    driver.give(install("first-only", |window, plan| {
        if window.requests.id.first() == Some(&1) {
            whole(plan, 0, 0, &[1]);
        }
    }));
    let mut costly = request(1, 0, Time::ZERO, 100_000);
    costly.cost = Cost::rows(200);
    driver.arrive(costly);
    driver
}

#[test]
fn a_request_that_no_idle_worker_can_hold_keeps_no_driver_awake() {
    let mut driver = with_a_small_worker();
    driver.arrive(request(2, 1, Time::ZERO, 10_500));
    // The fallback would serve it from 5.5 ms on. At 7.5 ms it is hopeless.
    driver.advance_to(Time(5_500));
    assert_eq!(driver.scheduler.next_wakeup(), Some(Time(7_501)));
    driver.advance_to(Time(7_501));
    let dropped = Outcome::Dropped(DroppedFrom::Pending);
    assert_eq!(driver.replies[&RequestId(2)].outcome, dropped);
}

#[test]
fn a_request_that_no_idle_worker_can_hold_hides_no_other_one_from_the_fallback() {
    let mut driver = with_a_small_worker();
    driver.arrive(request(2, 1, Time::ZERO, 10_500));
    driver.arrive(request(3, 0, Time::ZERO, 10_000));
    driver.advance_to(Time(10_000));
    assert_eq!(driver.runs.len(), 2);
    assert_eq!(
        (driver.runs[1].0, driver.runs[1].1.worker),
        (Time(7_000), WorkerId(1))
    );
    let outcome = &driver.replies[&RequestId(3)].outcome;
    assert!(matches!(outcome, Outcome::Answered { in_time: true, .. }));
}
