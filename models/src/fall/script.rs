//! What subjects do: a motion drawn for a label.
//!
//! The kinds on both sides are chosen to meet in the middle. A hard sit and a flop onto a bed hit
//! as hard as a soft fall; a faint goes down as slowly as somebody who lies down on a mat; who
//! slides down a wall ends up like who sits on the floor.

mod daily;
mod falls;

use std::f64::consts::TAU;

use rand::Rng;
use rand_pcg::Pcg64;

use super::motion::{Gait, Motion, Sway, Track};

/// Length of an adult's legs in metres.
const LEG_M: std::ops::Range<f64> = 0.78..0.98;

/// A motion of a fall or of an activity of daily living.
pub(super) fn draw(fall: bool, rng: &mut Pcg64) -> Motion {
    if fall {
        falls::draw(rng)
    } else {
        daily::draw(rng)
    }
}

/// A subject who stands.
fn standing(rng: &mut Pcg64) -> Motion {
    let leg_m = rng.random_range(LEG_M);
    Motion {
        leg_m,
        heading: rng.random_range(0.0..TAU),
        direction: 0.0,
        height: Track::from(leg_m),
        walked: Track::from(0.0),
        travel: Track::from(0.0),
        tilt: Track::from(rng.random_range(-0.03..0.08)),
        stretch: Track::from(0.0),
        arms: Track::from(0.0),
        gait: None,
        sway: Sway {
            amplitude: rng.random_range(0.002..0.02),
            frequency_hz: rng.random_range(0.2..0.7),
            phase: rng.random(),
        },
    }
}

/// Lets a standing subject have walked, until a time in seconds.
fn walk_until(motion: &mut Motion, until_s: f64, rng: &mut Pcg64) {
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

/// A subject who stands, or with odds `walking` has walked until a time.
fn arriving(walking: f64, until_s: f64, rng: &mut Pcg64) -> Motion {
    let mut motion = standing(rng);
    if rng.random_bool(walking) {
        walk_until(&mut motion, until_s, rng);
    }
    motion
}
