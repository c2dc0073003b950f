//! Falls: from a trip that hits the floor at three metres per second to a slow slide down a wall.

use std::f64::consts::{FRAC_PI_2, PI};

use rand::Rng;
use rand_pcg::Pcg64;

use super::subject::{arriving, choose, standing};
use crate::fall::motion::{CoordinateTrack, Motion};

/// Share of subjects that move again after the impact, within the window.
const STIRRING: f64 = 0.3;

/// Draws the motion of a fall, and when the subject hits the floor, in seconds.
type FallKind = fn(&mut Pcg64) -> (Motion, f64);

/// Kinds of falls and their relative frequencies.
const FALLS: [(f64, FallKind); 6] = [
    (0.24, forward),
    (0.18, backward),
    (0.16, sideways),
    (0.18, faint),
    (0.12, off_a_chair),
    (0.12, down_a_wall),
];

/// The motion of one of the falls.
pub(super) fn draw(rng: &mut Pcg64) -> Motion {
    let (mut motion, down_s) = choose(&FALLS, down_a_wall, rng)(rng);
    if rng.random_bool(STIRRING) {
        stir(&mut motion, down_s + rng.random_range(0.2..0.9), rng);
    }
    motion
}

/// Start of a fall, in seconds: early enough to reach the floor in the window.
fn begin_s(rng: &mut Pcg64) -> f64 {
    rng.random_range(0.5..1.6)
}

/// Tries to get up, or rolls.
fn stir(motion: &mut Motion, at_s: f64, rng: &mut Pcg64) {
    let duration_s = rng.random_range(0.4..1.0);
    motion
        .tilt
        .smooth(at_s, duration_s, -rng.random_range(0.1..0.8));
    motion
        .height
        .smooth(at_s, duration_s, rng.random_range(0.0..0.12));
    motion
        .arms
        .smooth(at_s, duration_s, rng.random_range(-0.5..0.5));
}

/// Height from the hips down to the hips of a lying body, in metres.
fn to_the_floor(motion: &Motion, rng: &mut Pcg64) -> f64 {
    motion.leg_m - rng.random_range(0.1..0.22)
}

/// Trips; one in three goes down on the knees first.
fn forward(rng: &mut Pcg64) -> (Motion, f64) {
    let at_s = begin_s(rng);
    let mut motion = arriving(0.8, at_s, rng);
    motion.direction = rng.random_range(-0.5..0.5);
    let down = to_the_floor(&motion, rng);
    let acceleration = rng.random_range(4.0..9.3);
    let down_s = if rng.random_bool(0.33) {
        let first = 0.55 * down;
        let knees_s = motion.height.drop(at_s, first, acceleration, 0.08);
        motion
            .height
            .drop(knees_s + 0.1, down - first, acceleration, stop_s(rng))
    } else {
        motion.height.drop(at_s, down, acceleration, stop_s(rng))
    };
    let duration_s = down_s - at_s;
    motion
        .tilt
        .launch(at_s, duration_s, rng.random_range(1.3..1.65));
    motion
        .travel
        .launch(at_s, duration_s, rng.random_range(0.5..0.9));
    motion.stretch.smooth(at_s + 0.1, duration_s, 1.0);
    motion.arms.smooth(at_s, 0.3, rng.random_range(0.2..1.0));
    (motion, down_s)
}

/// Slips: the hips land first, the trunk after them.
fn backward(rng: &mut Pcg64) -> (Motion, f64) {
    let at_s = begin_s(rng);
    let mut motion = arriving(0.7, at_s, rng);
    motion.direction = PI + rng.random_range(-0.5..0.5);
    let down = to_the_floor(&motion, rng);
    let down_s = motion
        .height
        .drop(at_s, down, rng.random_range(4.5..9.3), stop_s(rng));
    let duration_s = down_s - at_s;
    let half = rng.random_range(0.4..0.9);
    motion.tilt.launch(at_s, duration_s, half);
    let flat = rng.random_range(1.0..1.6) - half;
    motion
        .tilt
        .smooth(down_s, rng.random_range(0.15..0.4), flat);
    motion
        .travel
        .launch(at_s, duration_s, rng.random_range(0.2..0.6));
    motion.stretch.smooth(at_s + 0.1, duration_s + 0.2, 1.0);
    motion.arms.smooth(at_s, 0.25, rng.random_range(0.2..1.0));
    (motion, down_s)
}

/// Topples over to a side.
fn sideways(rng: &mut Pcg64) -> (Motion, f64) {
    let at_s = begin_s(rng);
    let mut motion = arriving(0.5, at_s, rng);
    let side = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
    motion.direction = side * (FRAC_PI_2 + rng.random_range(-0.5..0.5));
    let down = to_the_floor(&motion, rng);
    let down_s = motion
        .height
        .drop(at_s, down, rng.random_range(4.0..9.0), stop_s(rng));
    let duration_s = down_s - at_s;
    motion
        .tilt
        .launch(at_s, duration_s, rng.random_range(1.2..1.6));
    motion
        .travel
        .launch(at_s, duration_s, rng.random_range(0.4..0.9));
    motion.stretch.smooth(at_s + 0.1, duration_s, 1.0);
    motion.arms.smooth(at_s, 0.3, rng.random_range(0.0..0.9));
    (motion, down_s)
}

/// Faints: the knees give way, the trunk follows; soft, slow, and without a reflex of the arms.
fn faint(rng: &mut Pcg64) -> (Motion, f64) {
    let at_s = rng.random_range(0.4..1.3);
    let mut motion = arriving(0.3, at_s - 0.2, rng);
    motion.direction = rng.random_range(-PI..PI);
    let down = to_the_floor(&motion, rng);
    let down_s = motion.height.drop(
        at_s,
        down,
        rng.random_range(1.5..5.0),
        rng.random_range(0.07..0.25),
    );
    let duration_s = down_s - at_s;
    let topple_s = rng.random_range(0.4..0.8);
    let lag_s = rng.random_range(0.2..0.8) * duration_s;
    motion
        .tilt
        .smooth(at_s + lag_s, topple_s, rng.random_range(1.1..1.6));
    motion
        .travel
        .smooth(at_s, duration_s, rng.random_range(0.1..0.5));
    motion
        .stretch
        .smooth(at_s + lag_s, topple_s, rng.random_range(0.4..1.0));
    (motion, down_s)
}

/// Drops off a chair or slides from its edge.
fn off_a_chair(rng: &mut Pcg64) -> (Motion, f64) {
    let at_s = begin_s(rng);
    let mut motion = standing(rng);
    let seat = rng.random_range(0.38..0.52);
    motion.height = CoordinateTrack::from(seat);
    motion.direction = rng.random_range(-2.0..2.0);
    let down = seat - rng.random_range(0.1..0.2);
    let down_s = motion
        .height
        .drop(at_s, down, rng.random_range(3.0..8.5), stop_s(rng));
    let duration_s = down_s - at_s + rng.random_range(0.0..0.3);
    motion
        .tilt
        .smooth(at_s - 0.2, duration_s + 0.2, rng.random_range(1.0..1.6));
    motion
        .travel
        .smooth(at_s - 0.1, duration_s, rng.random_range(0.3..0.6));
    motion
        .stretch
        .smooth(at_s, duration_s + 0.2, rng.random_range(0.4..1.0));
    motion.arms.smooth(at_s, 0.3, rng.random_range(0.0..0.9));
    (motion, down_s)
}

/// Slides down a wall and stays there, half sitting.
fn down_a_wall(rng: &mut Pcg64) -> (Motion, f64) {
    let at_s = rng.random_range(0.3..1.2);
    let mut motion = arriving(0.2, at_s - 0.2, rng);
    motion.direction = PI + rng.random_range(-1.2..1.2);
    let down = to_the_floor(&motion, rng);
    let down_s = motion.height.drop(
        at_s,
        down,
        rng.random_range(1.2..4.0),
        rng.random_range(0.06..0.22),
    );
    let duration_s = down_s - at_s;
    motion
        .tilt
        .smooth(at_s, duration_s, rng.random_range(0.2..0.6));
    motion
        .tilt
        .smooth(down_s - 0.1, 0.5, rng.random_range(0.0..0.6));
    motion
        .travel
        .smooth(at_s, duration_s, rng.random_range(0.0..0.25));
    motion
        .stretch
        .smooth(at_s, duration_s + 0.2, rng.random_range(0.0..0.5));
    (motion, down_s)
}

/// Time that a body takes to stop on the floor, in seconds.
fn stop_s(rng: &mut Pcg64) -> f64 {
    rng.random_range(0.04..0.16)
}
