//! The accelerometer at the waist: the accelerations of the motion, measured through a strap by a
//! cheap chip.

use std::f64::consts::{PI, TAU};

use rand::Rng;
use rand_distr::{Distribution, LogNormal, StandardNormal};
use rand_pcg::Pcg64;

use super::layout::{SAMPLE_RATE_HZ, SAMPLES};
use super::motion::{GRAVITY, Motion, Pose};
use super::space::{Axes, UP, Vector3, add, along, horizontal, scaled, sub, turned};

/// Steps per sample: the strap oscillates faster than the chip samples.
const SUBSTEPS: usize = 4;

/// Time before the window in which the strap settles, in steps.
const LEAD_IN: usize = 40;

/// Share of sensors that hang loosely (a necklace, a bag), and so follow the trunk's turns only in
/// part.
const HANGING: f64 = 0.3;
/// Share of windows in which the sensor is knocked against something.
const KNOCKED: f64 = 0.25;
/// Share of windows in which the sensor is turned by hand, without its wearer turning.
const TURNED: f64 = 0.15;
/// Share of windows in which the sensor is not worn, but lies on a table.
const ASIDE: f64 = 0.1;
/// Share of windows with a gap in the radio link; the last value is held.
const GAP: f64 = 0.12;

/// Median of the noise's standard deviation per axis, in g, and the spread of its logarithm.
const NOISE_G: f64 = 0.035;
const NOISE_SPREAD: f64 = 0.6;

/// How one sensor is worn, and its disturbances.
struct Sensor {
    /// Axes of the chip in the wearer's frame.
    mounting: Axes,
    /// Share of the trunk's tilt that the sensor follows.
    follows: f64,
    /// Share of the body's acceleration that reaches the sensor: all, or nothing if it is not worn.
    reach: f64,
    /// Natural frequency of the strap in radians per second, and its damping ratio.
    strap: (f64, f64),
    knock: Option<Knock>,
    turn: Option<Turn>,
}

/// A half sine of acceleration, in g.
struct Knock {
    at_s: f64,
    duration_s: f64,
    push: Vector3,
}

/// A turn by `angle` around `axis` over `duration_s`.
struct Turn {
    at_s: f64,
    duration_s: f64,
    axis: Vector3,
    angle: f64,
}

/// Appends the window to `values`, in g: 150 samples of 3 axes.
pub(super) fn record(motion: &Motion, rng: &mut Pcg64, values: &mut Vec<f32>) {
    let sensor = Sensor::draw(rng);
    let mut samples = sensor.feel(motion);
    transmit(&mut samples, rng);
    values.extend(samples.iter().flatten().map(|&value| value as f32));
}

// === impl Sensor ===

impl Sensor {
    fn draw(rng: &mut Pcg64) -> Self {
        let axes = Axes([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], UP]);
        // Belts slip in any direction around the waist and are seldom level.
        let level: f64 = StandardNormal.sample(rng);
        let mounting = axes
            .turned([1.0, 0.0, 0.0], 0.25 * level)
            .turned(UP, rng.random_range(0.0..TAU));
        let aside = rng.random_bool(ASIDE);
        let hanging = rng.random_bool(HANGING);
        let strap_hz: f64 = rng.random_range(if hanging { 3.0..8.0 } else { 7.0..25.0 });
        Self {
            mounting,
            follows: match (aside, hanging) {
                (true, _) => 0.0,
                (false, true) => rng.random_range(0.05..0.7),
                (false, false) => 1.0,
            },
            reach: if aside { 0.0 } else { 1.0 },
            strap: (TAU * strap_hz, rng.random_range(0.25..0.9)),
            knock: rng.random_bool(KNOCKED).then(|| Knock::draw(rng)),
            turn: rng.random_bool(TURNED).then(|| Turn::draw(rng)),
        }
    }

    /// The accelerations at the chip, in g, once per sample.
    fn feel(&self, motion: &Motion) -> Vec<Vector3> {
        let step_s = 1.0 / (SAMPLE_RATE_HZ * SUBSTEPS as f64);
        let time_s = |step: usize| (step as f64 - LEAD_IN as f64) * step_s;
        let mut before = motion.pose(time_s(0) - step_s).hips;
        let mut pose = motion.pose(time_s(0));
        let mut samples = Vec::with_capacity(SAMPLES);
        let (mut state, mut speed): (Option<Vector3>, Vector3) = (None, [0.0; 3]);
        for step in 0..LEAD_IN + SAMPLES * SUBSTEPS {
            let next = motion.pose(time_s(step) + step_s);
            let bend = sub(add(next.hips, before), scaled(pose.hips, 2.0));
            let felt_g = along(UP, self.reach / (step_s * step_s * GRAVITY), bend);
            let push = self.in_chip(&pose, felt_g, time_s(step));
            // The strap: a damped spring that follows the body's acceleration.
            let at = *state.get_or_insert(push);
            let (frequency, damping) = self.strap;
            let pull = along(
                scaled(sub(push, at), frequency * frequency),
                -2.0 * damping * frequency,
                speed,
            );
            speed = along(speed, step_s, pull);
            let at = along(at, step_s, speed);
            state = Some(at);
            if step >= LEAD_IN && (step - LEAD_IN) % SUBSTEPS == SUBSTEPS - 1 {
                samples.push(at);
            }
            before = pose.hips;
            pose = next;
        }
        samples
    }

    /// Transforms the body's acceleration from the room's frame to the chip's.
    fn in_chip(&self, pose: &Pose, felt_g: Vector3, time_s: f64) -> Vector3 {
        let mut felt = pose.axes(self.follows).of(felt_g);
        if let Some(turn) = &self.turn {
            let x = ((time_s - turn.at_s) / turn.duration_s).clamp(0.0, 1.0);
            let angle = turn.angle * x * x * (3.0 - 2.0 * x);
            felt = turned(felt, turn.axis, angle);
        }
        if let Some(knock) = &self.knock {
            let x = (time_s - knock.at_s) / knock.duration_s;
            if (0.0..1.0).contains(&x) {
                felt = along(felt, (PI * x).sin(), knock.push);
            }
        }
        self.mounting.of(felt)
    }
}

// === impl Knock ===

impl Knock {
    fn draw(rng: &mut Pcg64) -> Self {
        Self {
            at_s: rng.random_range(0.1..2.8),
            duration_s: rng.random_range(0.02..0.08),
            push: scaled(direction(rng), rng.random_range(1.0..8.0)),
        }
    }
}

// === impl Turn ===

impl Turn {
    fn draw(rng: &mut Pcg64) -> Self {
        Self {
            at_s: rng.random_range(0.0..2.2),
            duration_s: rng.random_range(0.2..0.7),
            axis: direction(rng),
            angle: rng.random_range(0.6..2.0),
        }
    }
}

/// A unit vector, uniformly distributed over all directions.
fn direction(rng: &mut Pcg64) -> Vector3 {
    let up: f64 = rng.random_range(-1.0..1.0);
    let around = scaled(
        horizontal(rng.random_range(0.0..TAU)),
        (1.0 - up * up).sqrt(),
    );
    along(around, up, UP)
}

/// Faults of the chip and the radio link: noise, the end of the range, gaps.
fn transmit(samples_g: &mut [Vector3], rng: &mut Pcg64) {
    let level = LogNormal::new(0.0, NOISE_SPREAD).expect("the spread is a positive constant");
    let noise_g = NOISE_G * level.sample(rng);
    let range_g: f64 = [2.0, 4.0, 4.0, 8.0, 8.0][rng.random_range(0..5)];
    for sample in samples_g.iter_mut() {
        for value in sample {
            let noise: f64 = StandardNormal.sample(rng);
            *value = (*value + noise_g * noise).clamp(-range_g, range_g);
        }
    }
    if rng.random_bool(GAP) {
        let from = rng.random_range(1..samples_g.len() - 30);
        let count = rng.random_range(10..80).min(samples_g.len() - from);
        let held = samples_g[from - 1];
        samples_g[from..from + count].fill(held);
    }
}
