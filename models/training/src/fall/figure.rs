//! The body along a motion: a dozen capsules between joints.

use super::motion::Pose;
use super::space::{UP, Vector3, along, cross, dot, mixed, norm, scaled, sub};

/// A limb: everything within `radius_m` of the line between two joints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limb {
    pub(super) from: Vector3,
    pub(super) to: Vector3,
    pub(super) radius_m: f64,
}

/// Limbs of a body: trunk, shoulders, head, two arms of two, two legs of two.
pub(super) const LIMBS: usize = 11;

/// Lengths of the body relative to its legs.
const THIGH: f64 = 0.52;
const TRUNK: f64 = 0.58;
const NECK: f64 = 0.2;
const ARM: f64 = 0.36;
const SHOULDER: f64 = 0.2;
const HIP: f64 = 0.1;

/// The body of a pose, for legs of a length in metres.
pub(super) fn limbs(pose: &Pose, leg_m: f64) -> [Limb; LIMBS] {
    let axes = pose.axes(1.0);
    let (left, up) = (axes.left(), axes.up());
    let neck = along(pose.hips, TRUNK * leg_m, up);
    let limb = |from, to, radius_m| Limb {
        from,
        to,
        radius_m: radius_m * leg_m,
    };
    let head = along(neck, NECK * leg_m, up);
    let shoulder = |side: f64| along(neck, side * SHOULDER * leg_m, left);
    let mut body = [limb(pose.hips, neck, 0.16); LIMBS];
    body[1] = limb(shoulder(1.0), shoulder(-1.0), 0.09);
    body[2] = limb(along(neck, 0.6 * NECK * leg_m, up), head, 0.125);
    for (i, side) in [1.0, -1.0].into_iter().enumerate() {
        let (elbow, hand) = arm(pose, shoulder(side), side, leg_m);
        body[3 + 4 * i] = limb(shoulder(side), elbow, 0.06);
        body[4 + 4 * i] = limb(elbow, hand, 0.05);
        let hip = along(pose.hips, side * HIP * leg_m, left);
        let (knee, foot) = leg(pose, hip, side, leg_m);
        body[5 + 4 * i] = limb(hip, knee, 0.1);
        body[6 + 4 * i] = limb(knee, foot, 0.075);
    }
    body
}

/// Elbow and hand: hanging and swinging against the leg, or reaching ahead.
fn arm(pose: &Pose, shoulder: Vector3, side: f64, leg_m: f64) -> (Vector3, Vector3) {
    let axes = pose.axes(1.0);
    let down = scaled(axes.up(), -1.0);
    let swing = along(down, -0.4 * side * pose.stride.0, axes.forward());
    let ahead = along(pose.direction, 0.4, UP);
    let direction = mixed(swing, ahead, pose.arms);
    let unit = scaled(direction, 1.0 / norm(direction).max(1e-6));
    let elbow = along(shoulder, ARM * leg_m, unit);
    let bent = along(unit, 0.3, axes.forward());
    let hand = along(elbow, ARM * leg_m / norm(bent).max(1e-6), bent);
    (above_floor(elbow), above_floor(hand))
}

/// Knee and foot.
fn leg(pose: &Pose, hip: Vector3, side: f64, leg_m: f64) -> (Vector3, Vector3) {
    let axes = pose.axes(1.0);
    let aside = cross(UP, pose.heading);
    // Position of the foot when it carries: next to the other foot, or a step ahead and lifted.
    let step = side * pose.reach_m * pose.stride.0;
    let lift = 0.12 * leg_m * (side * pose.stride.1).max(0.0);
    let carrying = along(
        along(pose.stand, side * HIP * leg_m, aside),
        step,
        pose.heading,
    );
    let carrying = along(carrying, lift, UP);
    let lying = along(hip, -0.98 * leg_m, axes.up());
    let wanted = above_floor(mixed(carrying, lying, pose.stretch));
    // A leg has a fixed length: a foot that would be too far is moved closer.
    let reach = sub(wanted, hip);
    let length = norm(reach).clamp(1e-6, leg_m);
    let unit = scaled(reach, 1.0 / norm(reach).max(1e-6));
    let foot = above_floor(along(hip, length, unit));
    // The knee bends forward, by the remainder of thigh and shin under the cosine rule.
    let thigh = THIGH * leg_m;
    let shin = leg_m - thigh;
    let on_line =
        ((length * length + thigh * thigh - shin * shin) / (2.0 * length)).clamp(-thigh, thigh);
    let off_line = (thigh * thigh - on_line * on_line).max(0.0).sqrt();
    let forward = axes.forward();
    let outward = along(forward, -dot(forward, unit), unit);
    let outward = scaled(outward, 1.0 / norm(outward).max(1e-6));
    let knee = along(along(hip, on_line, unit), off_line, outward);
    (above_floor(knee), foot)
}

/// Keeps limbs on the floor, not in it.
fn above_floor(at: Vector3) -> Vector3 {
    [at[0], at[1], at[2].max(0.04)]
}
