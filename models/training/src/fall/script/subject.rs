//! A subject at the start of a script, and the choice of a script.

use std::f64::consts::TAU;
use std::ops::Range;

use rand::Rng;
use rand_pcg::Pcg64;

use crate::fall::motion::{CoordinateTrack, Gait, Motion, Sway};

/// Length of an adult's legs in metres.
const LEG_M: Range<f64> = 0.78..0.98;

/// A standing subject.
pub(super) fn standing(rng: &mut Pcg64) -> Motion {
    let leg_m = rng.random_range(LEG_M);
    Motion {
        leg_m,
        heading: rng.random_range(0.0..TAU),
        direction: 0.0,
        height: CoordinateTrack::from(leg_m),
        walked: CoordinateTrack::from(0.0),
        travel: CoordinateTrack::from(0.0),
        tilt: CoordinateTrack::from(rng.random_range(-0.03..0.08)),
        stretch: CoordinateTrack::from(0.0),
        arms: CoordinateTrack::from(0.0),
        gait: None,
        sway: Sway {
            amplitude: rng.random_range(0.002..0.02),
            frequency_hz: rng.random_range(0.2..0.7),
            phase: rng.random(),
        },
    }
}

/// Makes a standing subject walk from before the window until a time in seconds.
pub(super) fn walk_until(motion: &mut Motion, until_s: f64, rng: &mut Pcg64) {
    let speed = rng.random_range(0.35..1.5);
    let stride_hz = 0.55 + 0.28 * speed + rng.random_range(-0.05..0.08);
    let fade_s = rng.random_range(0.2..0.45);
    motion.walked.walk(speed, until_s, fade_s);
    motion.gait = Some(Gait {
        stride_hz,
        phase: rng.random(),
        reach_m: speed / stride_hz / 4.0,
        bob_m: rng.random_range(0.012..0.045) * speed.sqrt(),
        until_s,
        fade_s,
    });
}

/// A subject that stands, or with probability `walking` has walked until a time.
pub(super) fn arriving(walking: f64, until_s: f64, rng: &mut Pcg64) -> Motion {
    let mut motion = standing(rng);
    if rng.random_bool(walking) {
        walk_until(&mut motion, until_s, rng);
    }
    motion
}

/// One of `kinds`, each as often as its weight says; `otherwise` if rounding leaves a sliver above
/// the last one.
pub(super) fn choose<T: Copy>(kinds: &[(f64, T)], otherwise: T, rng: &mut Pcg64) -> T {
    let total: f64 = kinds.iter().map(|(weight, _)| weight).sum();
    let mut left = rng.random_range(0.0..total);
    for (weight, kind) in kinds {
        left -= weight;
        if left < 0.0 {
            return *kind;
        }
    }
    otherwise
}
