//! A motion as a handful of coordinates over time, each a sum of moves.
//!
//! Moves are written for a plausible second derivative: a drop is constant acceleration to a speed
//! and constant deceleration over the time of its landing, so weightlessness and impact in the
//! accelerometer follow from height and hardness.

use std::f64::consts::TAU;

use super::space::{Axes, UP, Vector3, along, cross, horizontal};

/// Acceleration of free fall in m/s^2.
pub(super) const GRAVITY: f64 = 9.81;

/// Before this time, in seconds, every walk is already under way.
const LONG_AGO_S: f64 = -1.0;

/// How a move gets from 0 to its full displacement.
#[derive(Clone, Copy, Debug)]
enum MoveShape {
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

/// One move of a coordinate.
#[derive(Clone, Copy, Debug)]
struct CoordinateMove {
    at_s: f64,
    duration_s: f64,
    by: f64,
    shape: MoveShape,
}

/// One coordinate over time.
#[derive(Clone, Debug, Default)]
pub(super) struct CoordinateTrack {
    start: f64,
    moves: Vec<CoordinateMove>,
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

/// A slow involuntary sway: amplitude in metres and radians, frequency, phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sway {
    pub(super) amplitude: f64,
    pub(super) frequency_hz: f64,
    pub(super) phase: f64,
}

/// A subject's motion in a window.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    /// Length of the legs in metres; the rest of the body is in proportion.
    pub(super) leg_m: f64,
    /// Heading of the subject, in radians in the room.
    pub(super) heading: f64,
    /// Direction of `travel` and `tilt`, in radians from the heading, anticlockwise.
    pub(super) direction: f64,
    /// Height of the hips in metres.
    pub(super) height: CoordinateTrack,
    /// Distance walked along the heading, in metres; the feet move along.
    pub(super) walked: CoordinateTrack,
    /// Distance of the hips along the direction, in metres; the feet stay.
    pub(super) travel: CoordinateTrack,
    /// Angle of the trunk from upright, towards the direction, in radians.
    pub(super) tilt: CoordinateTrack,
    /// 0 while the feet carry, 1 while the legs are in line with the trunk.
    pub(super) stretch: CoordinateTrack,
    /// 0 while the arms hang, 1 while they reach towards the direction.
    pub(super) arms: CoordinateTrack,
    pub(super) gait: Option<Gait>,
    pub(super) sway: Sway,
}

/// The body at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pose {
    /// Middle of the hips, in metres in the room.
    pub(super) hips: Vector3,
    /// Middle between the feet while they carry, on the floor.
    pub(super) stand: Vector3,
    /// Angle of the trunk from upright, towards `direction`.
    tilt: f64,
    /// Heading of the upright subject.
    pub(super) heading: Vector3,
    /// Horizontal direction of travel and tilt.
    pub(super) direction: Vector3,
    pub(super) stretch: f64,
    pub(super) arms: f64,
    /// Sine and cosine of the stride, faded with the steps.
    pub(super) stride: (f64, f64),
    /// Half the length of a step in metres.
    pub(super) reach_m: f64,
}

// === impl MoveShape ===

impl MoveShape {
    /// Displacement of a move at share `x` of its time, per total displacement; for a flight in
    /// units of `GRAVITY * duration^2 / 2`.
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

// === impl CoordinateTrack ===

impl CoordinateTrack {
    pub(super) fn from(start: f64) -> Self {
        Self {
            start,
            moves: Vec::new(),
        }
    }

    pub(super) fn at(&self, time_s: f64) -> f64 {
        let part = |m: &CoordinateMove| {
            let x = ((time_s - m.at_s) / m.duration_s).clamp(0.0, 1.0);
            m.by * m.shape.at(x)
        };
        self.start + self.moves.iter().map(part).sum::<f64>()
    }

    fn push(&mut self, at_s: f64, duration_s: f64, by: f64, shape: MoveShape) -> f64 {
        self.moves.push(CoordinateMove {
            at_s,
            duration_s,
            by,
            shape,
        });
        at_s + duration_s
    }

    /// A deliberate move. Returns its end, as all of these methods do.
    pub(super) fn smooth(&mut self, at_s: f64, duration_s: f64, by: f64) -> f64 {
        self.push(at_s, duration_s, by, MoveShape::Smooth)
    }

    /// A move that accelerates and ends abruptly.
    pub(super) fn launch(&mut self, at_s: f64, duration_s: f64, by: f64) -> f64 {
        self.push(at_s, duration_s, by, MoveShape::Launch)
    }

    /// Down by `by` metres in total: constant acceleration in m/s^2, then a landing that takes
    /// `stop_s`. Returns the start of the landing.
    pub(super) fn drop(&mut self, at_s: f64, by: f64, acceleration: f64, stop_s: f64) -> f64 {
        // v^2 / 2a on the way down and v * stop / 2 in the landing add up to the height.
        let half = stop_s / 2.0;
        let fall_s = (half * half + 2.0 * by.max(0.0) / acceleration).sqrt() - half;
        // A drop of no height takes no time, but a move must take some.
        let fall_s = fall_s.max(1e-3);
        let speed = acceleration * fall_s;
        let landing_s = self.push(at_s, fall_s, -speed * fall_s / 2.0, MoveShape::Launch);
        self.push(landing_s, stop_s, -speed * half, MoveShape::Stop);
        landing_s
    }

    /// A jump: crouch, push off, fly for `flight_s`, land over `stop_s`, straighten.
    pub(super) fn jump(&mut self, at_s: f64, push_s: f64, flight_s: f64, stop_s: f64) -> f64 {
        let speed = GRAVITY * flight_s / 2.0;
        let crouch = speed * push_s / 2.0;
        let pushing_s = self.push(at_s, 0.45, -crouch, MoveShape::Smooth);
        let flying_s = self.push(pushing_s, push_s, crouch, MoveShape::Launch);
        let lift = GRAVITY * flight_s * flight_s / 2.0;
        let landing_s = self.push(flying_s, flight_s, lift, MoveShape::Flight);
        let absorbed = speed * stop_s / 2.0;
        let low_s = self.push(landing_s, stop_s, -absorbed, MoveShape::Stop);
        self.push(low_s, 0.4, absorbed, MoveShape::Smooth)
    }

    /// A walk at `speed` since before the window, which ends over `fade_s` from `until_s` on.
    pub(super) fn walk(&mut self, speed: f64, until_s: f64, fade_s: f64) {
        let distance = speed * (until_s - LONG_AGO_S);
        self.start -= speed * -LONG_AGO_S;
        let stopping_s = self.push(
            LONG_AGO_S,
            until_s - LONG_AGO_S,
            distance,
            MoveShape::Cruise,
        );
        self.push(stopping_s, fade_s, speed * fade_s / 2.0, MoveShape::Stop);
    }
}

// === impl Gait ===

impl Gait {
    fn weight(&self, time_s: f64) -> f64 {
        let x = ((time_s - self.until_s) / self.fade_s).clamp(0.0, 1.0);
        1.0 - MoveShape::Smooth.at(x)
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
            // The hips rise twice per stride, with a sharper heel strike, and swing sideways once.
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
    /// Forward, left and up of an object that follows a share of the trunk's tilt.
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
        let mut height = CoordinateTrack::from(1.0);
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
        let mut height = CoordinateTrack::from(0.9);
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
        let mut walked = CoordinateTrack::from(0.0);
        walked.walk(1.2, 2.0, 0.4);
        assert!(walked.at(0.0).abs() < 1e-12);
        assert!((walked.at(1.0) - 1.2).abs() < 1e-12);
        assert!((walked.at(5.0) - (2.4 + 0.24)).abs() < 1e-12);
    }
}
