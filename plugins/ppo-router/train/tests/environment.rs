//! The environment against the published results of the paper's test bed.

#![allow(clippy::unwrap_used)]

use ppo_router_net::{Decision, Kind};
use ppo_router_train::{Env, SlotOutcome, TestBed};
use switchyard_core::time::Micros;
use switchyard_sim::Workload;

const WORKLOAD: &str = "mmpp:180,10,0.036,0.002";

/// Goodput and violation ratios in percent, with the same shares in every slot.
fn fixed(test_bed: &TestBed, shares: &[f64], slots: u32) -> (f64, f64) {
    let workload: Workload = WORKLOAD.parse().unwrap();
    let scenario = test_bed.scenario(workload, Micros(u64::MAX));
    let decision = Decision {
        shares: shares.to_vec(),
        batches: Vec::new(),
    };
    let mut all = SlotOutcome::default();
    for seed in 0..4 {
        let mut env = Env::reset(test_bed, &scenario, Kind::Paper, seed).unwrap();
        for _ in 0..slots / 4 {
            all.add(&env.step(&decision).unwrap());
        }
    }
    (100.0 * all.goodput_ratio(), 100.0 * all.violation_ratio())
}

/// Ratios per state. Half of all requests arrive in bursts of 27.8 s, so a short simulation has a
/// random share of them; the ratios per state in Table 2 do not depend on it.
fn by_phase(test_bed: &TestBed, shares: &[f64]) -> [(f64, f64); 2] {
    ["poisson:180", "poisson:10"].map(|workload| {
        let scenario = test_bed.scenario(workload.parse().unwrap(), Micros(u64::MAX));
        let decision = Decision {
            shares: shares.to_vec(),
            batches: Vec::new(),
        };
        let mut env = Env::reset(test_bed, &scenario, Kind::Paper, 1).unwrap();
        let mut all = SlotOutcome::default();
        for slot in 0..400 {
            let seen = env.step(&decision).unwrap();
            if slot > 0 {
                all.add(&seen);
            }
        }
        (100.0 * all.goodput_ratio(), 100.0 * all.violation_ratio())
    })
}

fn near(name: &str, got: (f64, f64), goodput: f64, violation: f64, by: f64) {
    let ok = (got.0 - goodput).abs() < by && (got.1 - violation).abs() < by;
    assert!(ok, "{name}: {got:?}, not {goodput} and {violation}");
}

/// LW: 77.69 and 0.
#[test]
fn four_light_instances_violate_nothing() {
    let test_bed = TestBed::paper().with_instances(&[0, 4]);
    near(
        "overall",
        fixed(&test_bed, &[0.25; 4], 8_000),
        77.69,
        0.0,
        0.01,
    );
}

/// HW: 0.089 and 99.89 in bursts, 82.78 and 0.007 in the normal state; in total 41.43 and 49.95.
#[test]
fn four_heavy_instances_fail_in_every_burst() {
    let test_bed = TestBed::paper().with_instances(&[4, 0]);
    let [bursty, normal] = by_phase(&test_bed, &[0.25; 4]);
    near("bursty", bursty, 0.089, 99.89, 0.3);
    near("normal", normal, 82.78, 0.007, 0.1);
}

/// HW-E rejects late requests: published 55.31 and 33.19 in bursts, in total 69.05 and 16.61.
#[test]
fn four_heavy_instances_that_reject_early_serve_half_of_a_burst() {
    let mut test_bed = TestBed::paper().with_instances(&[4, 0]);
    // Requests that start later end after 300 ms.
    test_bed.drops_after_us = Some(300_000 - 42_800);
    let [bursty, normal] = by_phase(&test_bed, &[0.25; 4]);
    near("normal", normal, 82.78, 0.0, 0.1);
    // Four instances serve 93.46 of 180 requests/s, 51.9 %. The published 66.8 % need a service
    // time of 33.3 ms, with which HW would reject 33 % instead of the published 48 %.
    near("bursty", bursty, 42.9, 48.2, 1.0);
}

#[test]
fn observations_match_the_window() {
    let test_bed = TestBed::paper();
    let scenario = test_bed.scenario("poisson:200".parse().unwrap(), Micros(u64::MAX));
    let mut env = Env::reset(&test_bed, &scenario, Kind::Paper, 3).unwrap();
    let mut total = SlotOutcome::default();
    for _ in 0..50 {
        total.add(&env.step(&test_bed.proportional()).unwrap());
        let seen = env.observation();
        assert_eq!(seen.len(), 132);
        let placed = &env.window().placed;
        for (w, numbers) in (0..).zip(seen.chunks_exact(33)) {
            let inside = placed.worker.iter().filter(|&&worker| worker == w).count();
            assert!(inside <= 15, "{inside} inside");
            assert_eq!(numbers.iter().position(|x| *x == 1.0), Some(inside));
        }
    }
    let inside = env.window().placed.id.len() as u64;
    assert_eq!(total.arrivals, total.ended + inside);
    assert_eq!(total.ended, total.in_time + total.late + total.rejected);
    assert!((9_500..10_500).contains(&total.arrivals), "{total:?}");
}

#[test]
fn full_observability_shows_the_phase() {
    let test_bed = TestBed::paper();
    let workload = "phases:180x2.5s,10x4.5s".parse().unwrap();
    let scenario = test_bed.scenario(workload, Micros(u64::MAX));
    let mut env = Env::reset(&test_bed, &scenario, Kind::Full, 1).unwrap();
    let mut phases = String::new();
    for _ in 0..14 {
        let last = &env.observation()[132..];
        assert_eq!(last.len(), 3);
        phases.push(if last[0] == 1.0 { 'b' } else { 'n' });
        assert_eq!(last[0] + last[1], 1.0);
        env.step(&test_bed.proportional()).unwrap();
    }
    assert_eq!(phases, "bbbnnnnbbbnnnn");
}

#[test]
fn the_same_seed_gives_the_same_environment() {
    let test_bed = TestBed::paper().with_batches();
    let scenario = test_bed.scenario(WORKLOAD.parse().unwrap(), Micros(u64::MAX));
    let run = |seed| {
        let mut env = Env::reset(&test_bed, &scenario, Kind::Extended, seed).unwrap();
        let mut decision = test_bed.proportional();
        decision.batches = vec![(1, 3), (3, 5)];
        let mut all = Vec::new();
        for _ in 0..40 {
            env.step(&decision).unwrap();
            all.extend_from_slice(env.observation());
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn the_reward_follows_eq_2() {
    let slot = SlotOutcome {
        value: 5.5,
        late: 2,
        rejected: 3,
        ..SlotOutcome::default()
    };
    assert_eq!(slot.reward(1.0, 1.0), 0.5);
    assert_eq!(slot.reward(0.5, 2.0), 7.5);
}
