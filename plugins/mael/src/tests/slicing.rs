//! Slices and SliceMode.

use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;

use super::*;
use crate::models;

const PSLO: &str = r#"{"algorithm": "pslo-mael", "slice_hold_ms": 0}"#;

/// One worker. `long` takes 100 ms, or four slices of 30, 30, 25 and 25 ms; `short` takes 10 ms
/// with an SLO of 50 ms.
fn test_bed() -> Catalog {
    let long = CatalogBuilder::new()
        .app("long", &["x"])
        .slo_us(1_000_000)
        .variant("long", &[0.9])
        .max_batch(1)
        .stages(4)
        .latency_at(1, 100_000);
    let parts = [30_000, 30_000, 25_000, 25_000];
    let cut = (0u32..).zip(parts).fold(long, |long, (stage, part_us)| {
        long.stage_latency(stage, stage + 1, stage == 3, 1, part_us)
    });
    cut.app("short", &["x"])
        .slo_us(50_000)
        .variant("short", &[0.9])
        .max_batch(1)
        .latency(10_000, 0)
        .worker("w")
        .queue_max(8)
        .build()
}

/// Adds a placed request that arrived now.
fn placed(mut window: raw::Window, app: u32, id: u64, state: u8) -> raw::Window {
    let slo_us = [1_000_000, 50_000][app as usize];
    let placed = window.placed.get_or_insert_with(super::no_rows);
    placed.id.push(id);
    placed.app.push(app);
    placed.arrival.push(window.now);
    placed.deadline.push(window.now + slo_us);
    placed.worker.push(0);
    placed.variant.push(app);
    placed.batch.push(id);
    placed.state.push(state);
    window
}

/// A policy with SliceMode on: a short request arrived while an unsliced long one ran.
fn sliced(catalog: &Catalog, json: &str) -> Mael {
    let mut policy = Mael::configure(catalog, json).unwrap();
    let window = WindowBuilder::new(catalog)
        .all_resident()
        .busy(0, 0, 80_000);
    let window = window.request("short").build();
    run(&mut policy, catalog, &placed(window, 0, 90, 2));
    assert!(policy.state.mode.on);
    policy
}

fn stages(decisions: &Decisions) -> Vec<(u64, (u32, u32))> {
    let of = |batch: &Batch| (batch.requests[0], batch.stages);
    decisions.batches.iter().map(of).collect()
}

#[test]
fn slices_are_as_even_as_boundaries_allow() {
    // In two: 3 + 3 | 5 + 1. With three slices the longest would still be 6.
    assert_eq!(models::even(&[3, 3, 5, 1], 2), [2, 4]);
    assert_eq!(models::even(&[3, 3, 5, 1], 3), [2, 4]);
    assert_eq!(models::even(&[3, 3, 5, 1], 9), [1, 2, 3, 4]);
    assert_eq!(models::even(&[10, 1, 1, 1], 2), [1, 4]);
}

#[test]
fn slice_mode_is_off_until_a_long_task_makes_another_late() {
    let catalog = test_bed();
    let mut policy = Mael::configure(&catalog, PSLO).unwrap();
    let idle = WindowBuilder::new(&catalog).all_resident();
    let whole = run(&mut policy, &catalog, &idle.clone().request("long").build());
    assert_eq!(stages(&whole), [(1, (0, 4))]);
    // 30 + 10 = 40 ms of 50: in time.
    let near = idle
        .clone()
        .now_us(1_010_000)
        .busy(0, 0, 30_000)
        .request("short")
        .build();
    run(&mut policy, &catalog, &placed(near, 0, 90, 2));
    assert!(!policy.state.mode.on);
    // 45 + 10 = 55 ms of 50: late.
    let far = idle
        .now_us(1_020_000)
        .busy(0, 0, 45_000)
        .request("short")
        .build();
    run(&mut policy, &catalog, &placed(far, 0, 90, 2));
    assert!(policy.state.mode.on);
}

#[test]
fn lateness_behind_short_tasks_does_not_turn_slice_mode_on() {
    let catalog = test_bed();
    let mut policy = Mael::configure(&catalog, PSLO).unwrap();
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .busy(0, 1, 45_000);
    let window = window.request("short").build();
    run(&mut policy, &catalog, &placed(window, 1, 90, 2));
    assert!(!policy.state.mode.on);
}

#[test]
fn a_long_task_runs_in_slices_and_shorter_tasks_pass() {
    let catalog = test_bed();
    let mut policy = sliced(&catalog, r#"{"algorithm": "pslo-mael"}"#);
    let idle = WindowBuilder::new(&catalog).all_resident();
    let first = run(&mut policy, &catalog, &idle.clone().request("long").build());
    assert_eq!(stages(&first), [(1, (0, 1))]);
    assert_eq!(first.batches[0].exit, None);
    // While the slice runs another long task arrives. Queued, it would start before the second
    // slice.
    let running = placed(idle.clone().busy(0, 0, 20_000).build(), 0, 1, 2);
    let mut second = running.clone();
    let late = raw::Requests {
        id: vec![2],
        app: vec![0],
        arrival: vec![second.now],
        deadline: vec![second.now + 1_000_000],
        priority: vec![0],
        min_quality: vec![0.0],
    };
    second.requests = Some(late);
    second.now = policy.due_us;
    second.workers.busy_until[0] = second.now + 20_000;
    let held = run(&mut policy, &catalog, &second);
    assert!(held.batches.is_empty() && held.wake_us.is_some());
    // A short task passes both.
    let mut third = second.clone();
    third.now = policy.due_us;
    third.requests = Some(raw::Requests {
        id: vec![2, 3],
        app: vec![0, 1],
        arrival: vec![second.now, third.now],
        deadline: vec![second.now + 1_000_000, third.now + 50_000],
        priority: vec![0, 0],
        min_quality: vec![0.0, 0.0],
    });
    let passes = run(&mut policy, &catalog, &third);
    assert_eq!(stages(&passes), [(3, (0, 1))]);
    // The slice has ended: its task continues before the other begins.
    let mut fourth = idle.build();
    fourth.now = third.now + 1;
    fourth.requests = Some(raw::Requests {
        id: vec![1, 2],
        app: vec![0, 0],
        arrival: vec![1_000_000; 2],
        deadline: vec![2_000_000; 2],
        priority: vec![0, 0],
        min_quality: vec![0.0, 0.0],
    });
    fourth.progress = Some(vec![raw::Progress {
        index: 0,
        worker: 0,
        variant: 0,
        stages_run: 1,
    }]);
    fourth.workers.parked[0] = 1;
    let goes_on = run(&mut policy, &catalog, &fourth);
    assert_eq!(stages(&goes_on), [(1, (1, 2))]);
}

#[test]
fn slice_mode_without_benefit_is_turned_off_and_begun_tasks_end_unsliced() {
    let catalog = test_bed();
    let mut policy = sliced(&catalog, PSLO);
    let idle = WindowBuilder::new(&catalog).all_resident();
    // A long task, and no task that passes its slices.
    let alone = run(&mut policy, &catalog, &idle.clone().request("long").build());
    assert_eq!(
        stages(&alone),
        [(1, (0, 1))],
        "SliceMode was on at the start of the window"
    );
    assert!(!policy.state.mode.on);
    let parked = idle
        .now_us(1_100_000)
        .request("long")
        .age_us(100_000)
        .parked(0, 0, 1);
    let rest = run(&mut policy, &catalog, &parked.build());
    assert_eq!(stages(&rest), [(1, (1, 4))]);
}

#[test]
fn slice_mode_with_benefit_stays_on() {
    let catalog = test_bed();
    let mut policy = sliced(&catalog, PSLO);
    let idle = WindowBuilder::new(&catalog).all_resident();
    run(&mut policy, &catalog, &idle.clone().request("long").build());
    policy.state.mode.on = true;
    // The first slice runs for 20 ms more, 80 ms follow: the short task ends at 30 ms instead of
    // 110.
    let mut window = placed(idle.busy(0, 0, 20_000).request("short").build(), 0, 1, 2);
    window.placed.as_mut().unwrap().id[0] = 1;
    window.requests.as_mut().unwrap().id[0] = 2;
    window.now = policy.due_us;
    window.workers.busy_until[0] = window.now + 20_000;
    let decisions = run(&mut policy, &catalog, &window);
    assert_eq!(stages(&decisions), [(2, (0, 1))]);
    assert!(policy.state.mode.on);
    // With slice_hold_ms it stays on for a while without benefit.
    let mut patient = sliced(
        &catalog,
        r#"{"algorithm": "pslo-mael", "slice_hold_ms": 50}"#,
    );
    let alone = |now_us| WindowBuilder::new(&catalog).now_us(now_us).all_resident();
    run(
        &mut patient,
        &catalog,
        &alone(1_020_000).request("long").build(),
    );
    assert!(patient.state.mode.on);
    run(
        &mut patient,
        &catalog,
        &alone(1_050_000).request("long").build(),
    );
    assert!(!patient.state.mode.on);
}

#[test]
fn state_survives_a_change_of_version() {
    let catalog = test_bed();
    let mut policy = sliced(&catalog, PSLO);
    let idle = WindowBuilder::new(&catalog).all_resident();
    run(&mut policy, &catalog, &idle.request("long").build());
    policy.state.mode.on = true;
    let mut next = Mael::configure(&catalog, PSLO).unwrap();
    next.restore(&policy.save()).unwrap();
    assert_eq!(next.state, policy.state);
    assert!(!next.state.ranges.is_empty());
    let error = next.restore(b"{}").unwrap_err();
    assert!(error.starts_with("state: "), "{error}");
    let other = policy.save();
    let other = String::from_utf8(other)
        .unwrap()
        .replace("\"format\":1", "\"format\":9");
    assert!(
        next.restore(other.as_bytes())
            .unwrap_err()
            .contains("format 9")
    );
    assert_eq!(next.state, policy.state, "a refused state changes nothing");
}

#[test]
fn short_tasks_stay_unsliced() {
    let catalog = test_bed();
    let mut policy = sliced(&catalog, PSLO);
    let idle = WindowBuilder::new(&catalog).all_resident();
    let short = run(
        &mut policy,
        &catalog,
        &idle.clone().request("short").build(),
    );
    assert_eq!(stages(&short), [(1, (0, 1))]);
    assert_eq!(short.batches[0].exit, Some(0));
    let mut over =
        Mael::configure(&catalog, r#"{"algorithm": "pslo-mael", "slice_over": 11}"#).unwrap();
    over.state.mode.on = true;
    let whole = run(&mut over, &catalog, &idle.request("long").build());
    assert_eq!(stages(&whole), [(1, (0, 4))]);
}
