//! A motion as a handful of coordinates over time, each a sum of moves.
//!
//! Moves are written so that their second derivative means something: a drop is constant
//! acceleration to a speed and constant deceleration over the time its landing takes, so that
//! weightlessness and impact in the accelerometer follow from height and hardness.

use std::f64::consts::TAU;

use super::space::{Axes, UP, V3, along, cross, horizontal};

/// Acceleration of free fall in m/s^2.
pub(super) const GRAVITY: f64 = 9.81;

/// Before this time, in seconds, every walk is already under way.
const LONG_AGO_S: f64 = -1.0;

/// How a move gets from 0 to its full displacement.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Least jerk: both ends at rest, `10 x^3 - 15 x^4 + 6 x^5`.
    Smooth,
    /// At constant speed.
    Cruise,
    /// From rest at constant acceleration.
    Launch,
    /// To rest at constant deceleration.
    Stop,
    /// Up and down under gravity; the displacement is 0.
    Flight,
}

#[derive(Clone, Copy, Debug)]
struct Move {
    at_s: f64,
    duration_s: f64,
    by: f64,
    shape: Shape,
}

/// One coordinate over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    start: f64,
    moves: Vec<Move>,
}

/// Steps of a subject, until they stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gait {
    /// Strides (two steps) per second.
    pub(super) stride_hz: f64,
    /// Phase at time 0, in turns.
    pub(super) phase: f64,
    /// Half the length of a step in metres.
    pub(super) reach_m: f64,
    /// Rise of the hips with each step, in metres.
    pub(super) bob_m: f64,
    /// When the last step begins to fade, and how long it takes.
    pub(super) until_s: f64,
    pub(super) fade_s: f64,
}

/// A slow sway that nobody suppresses: amplitude in metres and radians, frequency, phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sway {
    pub(super) amplitude: f64,
    pub(super) frequency_hz: f64,
    pub(super) phase: f64,
}

/// What a subject does in a window.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    /// Length of the legs in metres; the rest of the body is in proportion.
    pub(super) leg_m: f64,
    /// Where the subject looks, in radians in the room.
    pub(super) heading: f64,
    /// Where `travel` and `tilt` go, in radians from the heading, anticlockwise.
    pub(super) direction: f64,
    /// Height of the hips in metres.
    pub(super) height: Track,
    /// Way walked along the heading, in metres; the feet come along.
    pub(super) walked: Track,
    /// Way of the hips along the direction, in metres; the feet stay.
    pub(super) travel: Track,
    /// Angle of the trunk from upright, towards the direction, in radians.
    pub(super) tilt: Track,
    /// 0 where the feet carry, 1 where the legs are in line with the trunk.
    pub(super) stretch: Track,
    /// 0 where the arms hang, 1 where they reach towards the direction.
    pub(super) arms: Track,
    pub(super) gait: Option<Gait>,
    pub(super) sway: Sway,
}

/// The body at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pose {
    /// Middle of the hips, in metres in the room.
    pub(super) hips: V3,
    /// Middle between the feet when they carry, on the floor.
    pub(super) stand: V3,
    /// Angle of the trunk from upright, towards `direction`.
    tilt: f64,
    /// Of the subject when upright.
    pub(super) heading: V3,
    /// Horizontal direction of travel and tilt.
    pub(super) direction: V3,
    pub(super) stretch: f64,
    pub(super) arms: f64,
    /// Sine and cosine of the stride, faded with the steps.
    pub(super) stride: (f64, f64),
    /// Half the length of a step in metres.
    pub(super) reach_m: f64,
}

// === impl Shape ===

impl Shape {
    /// Displacement of a move that is `x` of the way through its time, per displacement; for a
    /// flight in units of `GRAVITY * duration^2 / 2`.
    fn at(self, x: f64) -> f64 {
        match self {
            Self::Smooth => x * x * x * (10.0 + x * (6.0 * x - 15.0)),
            Self::Cruise => x,
            Self::Launch => x * x,
            Self::Stop => x * (2.0 - x),
            Self::Flight => x * (1.0 - x),
        }
    }
}

// === impl Track ===

impl Track {
    pub(super) fn from(start: f64) -> Self {
        Self {
            start,
            moves: Vec::new(),
        }
    }

    pub(super) fn at(&self, time_s: f64) -> f64 {
        let part = |m: &Move| {
            let x = ((time_s - m.at_s) / m.duration_s).clamp(0.0, 1.0);
            m.by * m.shape.at(x)
        };
        self.start + self.moves.iter().map(part).sum::<f64>()
    }

    fn push(&mut self, at_s: f64, duration_s: f64, by: f64, shape: Shape) -> f64 {
        self.moves.push(Move {
            at_s,
            duration_s,
            by,
            shape,
        });
        at_s + duration_s
    }

    /// A deliberate move; returns when it ends, as all of these do.
    pub(super) fn smooth(&mut self, at_s: f64, duration_s: f64, by: f64) -> f64 {
        self.push(at_s, duration_s, by, Shape::Smooth)
    }

    /// A move that gathers speed and ends at once.
    pub(super) fn launch(&mut self, at_s: f64, duration_s: f64, by: f64) -> f64 {
        self.push(at_s, duration_s, by, Shape::Launch)
    }

    /// Down by `by` metres in total: constant acceleration in m/s^2, then a landing that takes
    /// `stop_s`. Returns when the landing begins.
    pub(super) fn drop(&mut self, at_s: f64, by: f64, acceleration: f64, stop_s: f64) -> f64 {
        // v^2 / 2a on the way down and v * stop / 2 in the landing make up the height.
        let half = stop_s / 2.0;
        let fall_s = (half * half + 2.0 * by.max(0.0) / acceleration).sqrt() - half;
        // A fall of no height takes no time; a move must take some.
        let fall_s = fall_s.max(1e-3);
        let speed = acceleration * fall_s;
        let landing_s = self.push(at_s, fall_s, -speed * fall_s / 2.0, Shape::Launch);
        self.push(landing_s, stop_s, -speed * half, Shape::Stop);
        landing_s
    }

    /// A jump: crouch, push off, fly for `flight_s`, land over `stop_s`, straighten.
    pub(super) fn jump(&mut self, at_s: f64, push_s: f64, flight_s: f64, stop_s: f64) -> f64 {
        let speed = GRAVITY * flight_s / 2.0;
        let crouch = speed * push_s / 2.0;
        let pushing_s = self.push(at_s, 0.45, -crouch, Shape::Smooth);
        let flying_s = self.push(pushing_s, push_s, crouch, Shape::Launch);
        let lift = GRAVITY * flight_s * flight_s / 2.0;
        let landing_s = self.push(flying_s, flight_s, lift, Shape::Flight);
        let absorbed = speed * stop_s / 2.0;
        let low_s = self.push(landing_s, stop_s, -absorbed, Shape::Stop);
        self.push(low_s, 0.4, absorbed, Shape::Smooth)
    }

    /// A walk that has been going on, at `speed`, and ends over `fade_s` from `until_s` on.
    pub(super) fn walk(&mut self, speed: f64, until_s: f64, fade_s: f64) {
        let way = speed * (until_s - LONG_AGO_S);
        self.start -= speed * -LONG_AGO_S;
        let stopping_s = self.push(LONG_AGO_S, until_s - LONG_AGO_S, way, Shape::Cruise);
        self.push(stopping_s, fade_s, speed * fade_s / 2.0, Shape::Stop);
    }
}

// === impl Gait ===

impl Gait {
    fn weight(&self, time_s: f64) -> f64 {
        let x = ((time_s - self.until_s) / self.fade_s).clamp(0.0, 1.0);
        1.0 - Shape::Smooth.at(x)
    }

    fn angle(&self, time_s: f64) -> f64 {
        TAU * (self.stride_hz * time_s + self.phase)
    }
}

// === impl Motion ===

impl Motion {
    /// The body at a time in seconds.
    pub(super) fn pose(&self, time_s: f64) -> Pose {
        let heading = horizontal(self.heading);
        let direction = horizontal(self.heading + self.direction);
        let left = cross(UP, heading);
        let swaying =
            self.sway.amplitude * (TAU * (self.sway.frequency_hz * time_s + self.sway.phase)).sin();
        let stand = along([0.0; 3], self.walked.at(time_s), heading);
        let mut hips = along(stand, self.travel.at(time_s) + swaying, direction);
        hips = along(hips, self.height.at(time_s), UP);
        let mut stride = (0.0, 0.0);
        let mut reach_m = 0.0;
        if let Some(gait) = &self.gait {
            let weight = gait.weight(time_s);
            let (sin, cos) = gait.angle(time_s).sin_cos();
            // The hips rise twice per stride, with a sharper heel strike, and swing once.
            let rise = cos * cos + 0.25 * (4.0 * gait.angle(time_s) + 0.7).sin();
            hips = along(hips, weight * gait.bob_m * (rise - 0.5), UP);
            hips = along(hips, weight * 0.6 * gait.bob_m * sin, left);
            stride = (weight * sin, weight * cos);
            reach_m = gait.reach_m;
        }
        let tilt = self.tilt.at(time_s) + swaying + 0.04 * stride.0;
        Pose {
            hips,
            stand,
            tilt,
            heading,
            direction,
            stretch: self.stretch.at(time_s).clamp(0.0, 1.0),
            arms: self.arms.at(time_s).clamp(0.0, 1.0),
            stride,
            reach_m,
        }
    }
}

// === impl Pose ===

impl Pose {
    /// Forward, left and up of something that follows a share of the trunk's tilt.
    pub(super) fn axes(&self, share: f64) -> Axes {
        let upright = Axes([self.heading, cross(UP, self.heading), UP]);
        upright.turned(cross(UP, self.direction), share * self.tilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_covers_its_height_at_its_acceleration() {
        let mut height = Track::from(1.0);
        let landing_s = height.drop(0.5, 0.8, 7.0, 0.06);
        assert!((height.at(landing_s + 0.06) - 0.2).abs() < 1e-12);
        let bend = |at: f64| {
            let h = 1e-3;
            (height.at(at + h) - 2.0 * height.at(at) + height.at(at - h)) / (h * h)
        };
        assert!((bend(0.6) + 7.0).abs() < 1e-6);
        let speed = 7.0 * (landing_s - 0.5);
        assert!((bend(landing_s + 0.03) - speed / 0.06).abs() < 1e-6);
    }

    #[test]
    fn a_jump_is_weightless_and_comes_back() {
        let mut height = Track::from(0.9);
        let end_s = height.jump(0.2, 0.2, 0.4, 0.1);
        assert!((height.at(end_s) - 0.9).abs() < 1e-12);
        let h = 1e-3;
        let at = 0.2 + 0.45 + 0.2 + 0.2;
        let bend = (height.at(at + h) - 2.0 * height.at(at) + height.at(at - h)) / (h * h);
        assert!((bend + GRAVITY).abs() < 1e-6, "{bend}");
        assert!(height.at(at) > 1.05);
    }

    #[test]
    fn a_walk_goes_on_until_it_stops() {
        let mut walked = Track::from(0.0);
        walked.walk(1.2, 2.0, 0.4);
        assert!(walked.at(0.0).abs() < 1e-12);
        assert!((walked.at(1.0) - 1.2).abs() < 1e-12);
        assert!((walked.at(5.0) - (2.4 + 0.24)).abs() < 1e-12);
    }
}
