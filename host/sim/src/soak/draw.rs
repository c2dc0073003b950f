//! The pool and the steps of a seed.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_core::catalog::Late;

use super::hostile::PolicyKind;
use super::pool::{CatalogChange, Ending, SoakPool};
use super::step::SoakStep;

/// Steps of a case. Most defects need fewer than ten; a longer case meets them in more states.
pub(super) const STEPS: usize = 400;

const LATE: [Late; 4] = [Late::Serve, Late::Drop, Late::Last, Late::Shed];

const CHANGES: [CatalogChange; 7] = [
    CatalogChange::AddWorker,
    CatalogChange::AddVariant,
    CatalogChange::Slower,
    CatalogChange::Faster,
    CatalogChange::SwapLate,
    CatalogChange::Same,
    CatalogChange::Shrunk,
];

/// The pool of a seed and its steps.
pub(super) fn draw(seed: u64) -> (SoakPool, Vec<SoakStep>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let pool = pool(&mut random, seed);
    // Some cases keep each policy for long, so that its plans meet all other faults.
    let swaps = [1.0, 0.1, 0.02][random.random_range(0..3)];
    let mut steps: Vec<_> = (0..STEPS).map(|_| step(&mut random, swaps)).collect();
    if random.random_bool(0.2) {
        let at = random.random_range(STEPS / 2..STEPS);
        steps.insert(at, SoakStep::Drain);
    }
    (pool, steps)
}

fn pool(random: &mut Pcg64, seed: u64) -> SoakPool {
    SoakPool {
        seed,
        workers: random.random_range(1..=3),
        variants: 3,
        percent: 100,
        late: [pick(random, &LATE), pick(random, &LATE)],
        second_is_small: random.random_bool(0.2),
        second_is_whole: random.random_bool(0.3),
        queue_max: random.random_range(1..=5),
        parked_max: random.random_range(0..=8),
        pending_max: random.random_range(4..=24),
        faults: random.random_range(3..=8),
        patience_ms: [100, 1_000][random.random_range(0..2)],
        follows_latencies: random.random_bool(0.5),
        outstanding: random.random_range(1..=3),
        ending: match random.random_range(0..8) {
            0..4 => Ending::ByFallback,
            4..7 => Ending::ByPolicy,
            _ => Ending::WithoutWorkers,
        },
    }
}

fn pick<T: Copy>(random: &mut Pcg64, of: &[T]) -> T {
    of[random.random_range(0..of.len())]
}

fn step(random: &mut Pcg64, swaps: f64) -> SoakStep {
    match random.random_range(0..100) {
        0..24 => SoakStep::Arrive {
            app: random.random_range(0..2),
            slack_us: slack_us(random),
            pinned: random.random_bool(0.15).then(|| random.random_range(0..3)),
            rows: rows(random),
        },
        24..42 => SoakStep::Wait {
            us: wait_us(random),
        },
        42..48 => SoakStep::Evidence {
            back: random.random_range(0..12),
        },
        48..72 => worker_fault(random),
        72..86 => client_fault(random),
        _ if random.random_bool(swaps) => operator_fault(random),
        _ => client_fault(random),
    }
}

/// Mostly as long as a batch; now and then long enough for a patience.
fn wait_us(random: &mut Pcg64) -> u64 {
    match random.random_range(0..40) {
        0 => 1_500_000,
        1..4 => 150_000,
        _ => random.random_range(0..6_000),
    }
}

/// Mostly up to 30 ms; some requests are never due.
fn slack_us(random: &mut Pcg64) -> u64 {
    match random.random_ratio(1, 20) {
        true => 1 << 62,
        false => random.random_range(0..30_000),
    }
}

/// Mostly as costly as the requests of the profile.
fn rows(random: &mut Pcg64) -> f64 {
    match random.random_range(0..6) {
        0 => 0.25,
        1 => f64::from(random.random_range(2_u32..40)),
        _ => 1.0,
    }
}

fn worker_fault(random: &mut Pcg64) -> SoakStep {
    let worker = random.random_range(0..6);
    match random.random_range(0..24) {
        0..3 => SoakStep::Slow {
            worker,
            factor: pick(random, &[1, 1, 3, 20]),
        },
        3..6 => SoakStep::Fail {
            worker,
            repeatable: random.random_bool(0.6),
        },
        6 => match random.random_bool(0.5) {
            true => SoakStep::Lose { worker },
            false => SoakStep::Overtake { worker },
        },
        7 => SoakStep::Down { worker },
        8 => SoakStep::Leave { worker },
        9..13 => SoakStep::Up { worker },
        13..15 => SoakStep::Hang { worker },
        15..17 => SoakStep::AnswerLate {
            worker,
            fails: random.random_bool(0.3),
        },
        17..19 => SoakStep::AnswerTwice { worker },
        19 => SoakStep::AnswerOld { worker },
        20 => SoakStep::AnswerOther { worker },
        21..23 => SoakStep::Residency {
            worker,
            mask: random.random_range(0..16),
        },
        _ => SoakStep::Sleep {
            us: pick(random, &[50, 2_000, 20_000, 40_000_000]),
        },
    }
}

fn client_fault(random: &mut Pcg64) -> SoakStep {
    let back = random.random_range(0..16);
    match random.random_range(0..14) {
        0..7 => SoakStep::Cancel { back: back / 4 },
        7..9 => SoakStep::WrongEvidence { back },
        9..12 => SoakStep::LateEvidence {
            id: random.random_range(0..400),
        },
        12 => SoakStep::ArriveTwice { back },
        _ => SoakStep::Burst {
            app: random.random_range(0..2),
            count: random.random_range(5..40),
            slack_us: slack_us(random),
        },
    }
}

fn operator_fault(random: &mut Pcg64) -> SoakStep {
    let seed = random.random_range(0..1_000_000);
    let policy = pick(random, &PolicyKind::ALL);
    match random.random_range(0..16) {
        0..8 => SoakStep::Swap { policy, seed },
        8 => SoakStep::Remove,
        9..11 => SoakStep::Canary {
            serving: policy,
            candidate: pick(random, &PolicyKind::ALL),
            seed,
        },
        11 => SoakStep::EndCanary {
            promotes: random.random_bool(0.5),
            seed,
        },
        12..15 => SoakStep::Recatalog {
            change: pick(random, &CHANGES),
        },
        _ => SoakStep::Watch {
            on: random.random_bool(0.5),
        },
    }
}
