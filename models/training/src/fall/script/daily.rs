//! Activities of daily living: everything except falls, including activities that look like one.

use std::f64::consts::{FRAC_PI_2, PI};

use rand::Rng;
use rand_pcg::Pcg64;

use super::subject::{arriving, choose, standing, walk_until};
use crate::fall::motion::{CoordinateTrack, Motion};

/// Share of deliberate descents to the floor that end in a drop.
const PLUMPING: f64 = 0.2;

/// Draws the motion of an activity.
type Activity = fn(&mut Pcg64) -> Motion;

/// Activities and their relative frequencies.
const ACTIVITIES: [(f64, Activity); 9] = [
    (0.14, walk),
    (0.06, standing),
    (0.19, sit),
    (0.09, jump),
    (0.12, pick_up),
    (0.13, lie_down_on_a_bed),
    (0.10, go_down_to_the_floor),
    (0.12, stumble),
    (0.05, turn_in_bed),
];

/// The motion of one of the activities.
pub(super) fn draw(rng: &mut Pcg64) -> Motion {
    choose(&ACTIVITIES, walk, rng)(rng)
}

/// Walks through the window, or stops in it.
fn walk(rng: &mut Pcg64) -> Motion {
    let mut motion = standing(rng);
    let until_s = rng.random_range(1.0..4.0);
    walk_until(&mut motion, until_s, rng);
    motion
}

/// Sits down on a chair; in two of five cases drops onto it.
fn sit(rng: &mut Pcg64) -> Motion {
    let at_s = rng.random_range(0.5..1.5);
    let mut motion = arriving(0.5, at_s - 0.3, rng);
    motion.direction = PI;
    let down = motion.leg_m - rng.random_range(0.38..0.52);
    let seated_s = if rng.random_bool(0.4) {
        let (acceleration, stop_s) = (rng.random_range(2.5..8.5), rng.random_range(0.04..0.14));
        motion.height.drop(at_s, down, acceleration, stop_s)
    } else {
        let duration_s = rng.random_range(0.8..1.5);
        motion.height.smooth(at_s, duration_s, -down)
    };
    let duration_s = seated_s - at_s;
    motion
        .travel
        .smooth(at_s, duration_s, rng.random_range(0.25..0.45));
    // Bends forward on the way, then leans back.
    let lean = rng.random_range(0.1..0.6);
    motion.tilt.smooth(at_s - 0.1, 0.6 * duration_s, -lean);
    let back = lean + rng.random_range(0.0..0.5);
    motion
        .tilt
        .smooth(seated_s - 0.1, rng.random_range(0.3..0.7), back);
    motion
}

/// Jumps on the spot.
fn jump(rng: &mut Pcg64) -> Motion {
    let at_s = rng.random_range(0.1..1.0);
    let mut motion = arriving(0.2, at_s - 0.1, rng);
    let (push_s, flight_s) = (rng.random_range(0.15..0.28), rng.random_range(0.2..0.45));
    let stop_s = rng.random_range(0.05..0.16);
    let end_s = motion.height.jump(at_s, push_s, flight_s, stop_s);
    motion.arms.smooth(at_s, 0.4, rng.random_range(0.0..0.7));
    motion.arms.smooth(end_s - 0.3, 0.3, -0.7);
    motion
}

/// Bends for an object on the floor and comes up again.
fn pick_up(rng: &mut Pcg64) -> Motion {
    let at_s = rng.random_range(0.3..1.0);
    let mut motion = arriving(0.5, at_s - 0.2, rng);
    motion.direction = rng.random_range(-0.4..0.4);
    let (down_s, up_s) = (rng.random_range(0.4..0.9), rng.random_range(0.5..1.1));
    let (bend, low) = (rng.random_range(0.7..1.6), rng.random_range(0.0..0.5));
    let up_at_s = at_s + down_s + rng.random_range(0.0..1.2);
    for (at_s, duration_s, sign) in [(at_s, down_s, 1.0), (up_at_s, up_s, -1.0)] {
        motion.tilt.smooth(at_s, duration_s, sign * bend);
        motion.height.smooth(at_s, duration_s, -sign * low);
        motion.arms.smooth(at_s, duration_s, sign * 0.6);
    }
    motion
}

/// Lies down on a bed: slowly, or in two of five cases by dropping onto the mattress.
fn lie_down_on_a_bed(rng: &mut Pcg64) -> Motion {
    let at_s = rng.random_range(0.3..1.2);
    let mut motion = arriving(0.4, at_s - 0.3, rng);
    motion.direction = PI + rng.random_range(-1.6..1.6);
    let down = motion.leg_m - rng.random_range(0.3..0.55);
    let flat = rng.random_range(1.3..1.6);
    if rng.random_bool(0.4) {
        let (acceleration, stop_s) = (rng.random_range(3.5..9.3), rng.random_range(0.05..0.18));
        let landing_s = motion.height.drop(at_s, down, acceleration, stop_s);
        let duration_s = landing_s - at_s + rng.random_range(0.0..0.3);
        motion.tilt.launch(at_s, duration_s, flat);
        motion
            .travel
            .launch(at_s, duration_s, rng.random_range(0.3..0.7));
        motion.stretch.smooth(at_s, duration_s + 0.2, 1.0);
    } else {
        let sitting_s = motion
            .height
            .smooth(at_s, rng.random_range(0.6..1.0), -down);
        motion
            .travel
            .smooth(at_s, sitting_s - at_s, rng.random_range(0.3..0.6));
        let duration_s = rng.random_range(0.6..1.0);
        motion.tilt.smooth(sitting_s - 0.2, duration_s, flat);
        motion.stretch.smooth(sitting_s - 0.2, duration_s, 1.0);
    }
    motion
}

/// Sits or lies down on the floor on purpose: to play, to stretch, to look under a table.
fn go_down_to_the_floor(rng: &mut Pcg64) -> Motion {
    let at_s = rng.random_range(0.1..0.8);
    let mut motion = arriving(0.3, at_s - 0.2, rng);
    motion.direction = rng.random_range(-PI..PI);
    let down = motion.leg_m - rng.random_range(0.12..0.3);
    let low_s = if rng.random_bool(PLUMPING) {
        let (acceleration, stop_s) = (rng.random_range(1.5..6.0), rng.random_range(0.06..0.2));
        motion.height.drop(at_s, down, acceleration, stop_s)
    } else {
        motion
            .height
            .smooth(at_s, rng.random_range(0.9..1.7), -down)
    };
    let duration_s = low_s - at_s;
    motion
        .travel
        .smooth(at_s, duration_s, rng.random_range(0.1..0.4));
    motion
        .arms
        .smooth(at_s, duration_s, rng.random_range(0.0..0.8));
    if rng.random_bool(0.5) {
        let duration_s = rng.random_range(0.5..1.0);
        motion
            .tilt
            .smooth(low_s - 0.3, duration_s, rng.random_range(1.1..1.6));
        motion.stretch.smooth(low_s - 0.3, duration_s, 1.0);
    } else {
        motion
            .tilt
            .smooth(at_s, duration_s, rng.random_range(-0.2..0.7));
    }
    motion
}

/// Trips and catches the fall with a quick step.
fn stumble(rng: &mut Pcg64) -> Motion {
    let at_s = rng.random_range(0.6..1.7);
    let mut motion = standing(rng);
    walk_until(&mut motion, at_s, rng);
    motion.direction = rng.random_range(-0.6..0.6);
    let down = rng.random_range(0.06..0.3);
    let (acceleration, stop_s) = (rng.random_range(3.0..8.0), rng.random_range(0.03..0.12));
    let caught_s = motion.height.drop(at_s, down, acceleration, stop_s);
    let duration_s = caught_s - at_s + 0.1;
    let lean = rng.random_range(0.25..0.9);
    motion.tilt.launch(at_s, duration_s, lean);
    motion
        .travel
        .launch(at_s, duration_s, rng.random_range(0.05..0.3));
    motion.arms.smooth(at_s, duration_s, 0.9);
    let up_s = rng.random_range(0.4..0.9);
    motion.tilt.smooth(caught_s + 0.15, up_s, -lean);
    motion.height.smooth(caught_s + 0.15, up_s, down);
    motion.arms.smooth(caught_s + 0.15, up_s, -0.9);
    motion
}

/// Lies in bed from the start and turns or half sits up.
fn turn_in_bed(rng: &mut Pcg64) -> Motion {
    let mut motion = standing(rng);
    motion.height = CoordinateTrack::from(rng.random_range(0.3..0.55));
    motion.tilt = CoordinateTrack::from(FRAC_PI_2);
    motion.stretch = CoordinateTrack::from(1.0);
    let at_s = rng.random_range(0.2..2.0);
    motion.tilt.smooth(
        at_s,
        rng.random_range(0.4..1.0),
        -rng.random_range(0.0..0.9),
    );
    motion.travel.smooth(at_s, 0.8, rng.random_range(-0.2..0.2));
    motion
}
