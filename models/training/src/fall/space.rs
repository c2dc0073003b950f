//! Vectors of three.

/// A point or direction: forward, left, up in the subject's or the room's frame.
pub(super) type Vector3 = [f64; 3];

pub(super) const UP: Vector3 = [0.0, 0.0, 1.0];

pub(super) fn add(a: Vector3, b: Vector3) -> Vector3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn sub(a: Vector3, b: Vector3) -> Vector3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn scaled(a: Vector3, by: f64) -> Vector3 {
    a.map(|value| value * by)
}

/// `a + by * b`.
pub(super) fn along(a: Vector3, by: f64, b: Vector3) -> Vector3 {
    add(a, scaled(b, by))
}

pub(super) fn dot(a: Vector3, b: Vector3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: Vector3, b: Vector3) -> Vector3 {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

pub(super) fn norm(a: Vector3) -> f64 {
    dot(a, a).sqrt()
}

/// From `a` to `b` as `share` goes from 0 to 1.
pub(super) fn mixed(a: Vector3, b: Vector3, share: f64) -> Vector3 {
    along(scaled(a, 1.0 - share), share, b)
}

/// The horizontal direction at an angle, anticlockwise from the first axis.
pub(super) fn horizontal(angle: f64) -> Vector3 {
    [angle.cos(), angle.sin(), 0.0]
}

/// Rotates `a` around the unit vector `axis` (Rodrigues' formula).
pub(super) fn turned(a: Vector3, axis: Vector3, angle: f64) -> Vector3 {
    let (sin, cos) = angle.sin_cos();
    let straight = along(scaled(a, cos), sin, cross(axis, a));
    along(straight, dot(axis, a) * (1.0 - cos), axis)
}

/// Three orthogonal unit vectors: a body's forward, left and up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes(pub(super) [Vector3; 3]);

// === impl Axes ===

impl Axes {
    pub(super) fn turned(self, axis: Vector3, angle: f64) -> Self {
        Self(self.0.map(|a| turned(a, axis, angle)))
    }

    /// Coordinates in this frame of a vector in the room's frame.
    pub(super) fn of(self, a: Vector3) -> Vector3 {
        self.0.map(|own| dot(own, a))
    }

    pub(super) fn forward(self) -> Vector3 {
        self.0[0]
    }

    pub(super) fn left(self) -> Vector3 {
        self.0[1]
    }

    pub(super) fn up(self) -> Vector3 {
        self.0[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_around_left_lays_up_forward() {
        let up = turned(UP, [0.0, 1.0, 0.0], std::f64::consts::FRAC_PI_2);
        assert!(norm(sub(up, [1.0, 0.0, 0.0])) < 1e-12, "{up:?}");
    }
}
