#![allow(clippy::unwrap_used)]

use super::*;
use crate::law::Poisson;

const SLO: u64 = 100;
const WORKERS: usize = 3;

fn space() -> StateSpace {
    StateSpace {
        slo_us: SLO,
        slack_us: vec![0, 20, 45, 60, 80, 100],
        queue_max: 4,
    }
}

/// PF(k, T), by logarithms.
fn chance(law: Poisson, count: usize, time: f64) -> f64 {
    let mean = law.rate_per_us * time;
    if mean == 0.0 {
        return if count == 0 { 1.0 } else { 0.0 };
    }
    let k = count as f64;
    (k * mean.ln() - mean - libm::lgamma(k + 1.0)).exp()
}

/// Equation 2 as printed, for one phase, except that interval B is empty for slack 0: that includes
/// requests that are late already, which would count as a full queue as printed.
fn four_intervals(law: Poisson, latency: u64, q: usize, queued: usize, slack: usize) -> f64 {
    let grid = space().slack_us;
    let reach = |slack: u64| (latency as f64 + slack as f64 - SLO as f64).max(0.0);
    let b_time = if slack == 0 { 0.0 } else { reach(grid[slack]) };
    let c_time = grid
        .get(slack + 1)
        .map_or(0.0, |&next| reach(next) - b_time);
    let d_time = latency as f64 - b_time - c_time;
    let next = WORKERS - q;
    let mut sum = 0.0;
    for b in 0..next {
        let least = next - b;
        for c in least..least + queued * WORKERS {
            let d_from = (queued * WORKERS).saturating_sub(q + b + c);
            let d_to = (queued + 1) * WORKERS - q - b - c;
            for d in d_from..d_to {
                sum += chance(law, b, b_time) * chance(law, c, c_time) * chance(law, d, d_time);
            }
        }
    }
    sum
}

fn row(kernel: &Kernel, phase: usize) -> Vec<f64> {
    let mut row = vec![0.0; space().len()];
    for (state, chances) in kernel.row(phase) {
        for (k, chance) in chances.iter().enumerate() {
            row[state + k] += chance;
        }
    }
    row
}

#[test]
fn the_law_equals_equation_2() {
    let space = space();
    for rate_per_us in [0.004, 0.05, 0.2] {
        let law = Poisson { rate_per_us };
        let robin = RoundRobin::new(law, WORKERS, &space);
        for latency in [15, 55, 100, 130] {
            let kernel = robin.kernel(latency).unwrap();
            for q in 0..WORKERS {
                let row = row(&kernel, q);
                let empty: f64 = (0..WORKERS - q)
                    .map(|k| chance(law, k, latency as f64))
                    .sum();
                let mut rest = 1.0 - empty;
                for queued in 1..=space.queue_max {
                    for slack in 0..space.slacks() {
                        let mut expected = four_intervals(law, latency, q, queued, slack);
                        rest -= expected;
                        if space.state(queued, slack) == space.emptied() {
                            expected += empty;
                        }
                        let found = row[space.state(queued, slack)];
                        assert!(
                            (found - expected).abs() < 1e-13,
                            "rate {rate_per_us}, latency {latency}, phase {q}, to \
                             ({queued}, {slack}): {found} for {expected}"
                        );
                    }
                }
                // Equation 3.
                assert!((row[space.full()] - rest).abs() < 1e-13);
            }
        }
    }
}

#[test]
fn the_phase_has_the_distribution_of_interval_a() {
    let space = space();
    let law = Poisson { rate_per_us: 0.05 };
    let robin = RoundRobin::new(law, WORKERS, &space);
    let mut chances = [0.0; WORKERS];
    for queued in 1..=space.queue_max {
        for slack in 0..space.slacks() - 1 {
            robin.phase_chances(queued, slack, &mut chances);
            let waited = (SLO - space.slack_us[slack]) as f64;
            let of = |q: usize| chance(law, (queued - 1) * WORKERS + q, waited);
            let all: f64 = (0..WORKERS).map(of).sum();
            for (q, found) in chances.iter().enumerate() {
                assert!((found - of(q) / all).abs() < 1e-13);
            }
        }
    }
    robin.phase_chances(1, space.slacks() - 1, &mut chances);
    assert!(chances[0] == 1.0);
}

#[test]
fn phases_far_in_a_tail_keep_their_distribution() {
    let space = StateSpace {
        slo_us: 150_000,
        slack_us: vec![0, 149_999, 150_000],
        queue_max: 32,
    };
    let robin = RoundRobin::new(Poisson { rate_per_us: 1e-6 }, 60, &space);
    let mut chances = [0.0; 60];
    // At least 1860 arrivals in a microsecond: far below the smallest f64.
    robin.phase_chances(32, 1, &mut chances);
    assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(chances[0] > 0.999 && chances[1] > 0.0);
}
