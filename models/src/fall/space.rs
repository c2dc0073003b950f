//! Vectors of three.

/// A point or direction: forward, left, up in the subject's or the room's frame.
pub(super) type V3 = [f64; 3];

pub(super) const UP: V3 = [0.0, 0.0, 1.0];

pub(super) fn add(a: V3, b: V3) -> V3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn sub(a: V3, b: V3) -> V3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn scaled(a: V3, by: f64) -> V3 {
    a.map(|value| value * by)
}

/// `a + by * b`.
pub(super) fn along(a: V3, by: f64, b: V3) -> V3 {
    add(a, scaled(b, by))
}

pub(super) fn dot(a: V3, b: V3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: V3, b: V3) -> V3 {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

pub(super) fn norm(a: V3) -> f64 {
    dot(a, a).sqrt()
}

/// From `a` to `b` as `share` goes from 0 to 1.
pub(super) fn mixed(a: V3, b: V3, share: f64) -> V3 {
    along(scaled(a, 1.0 - share), share, b)
}

/// The horizontal direction at an angle, anticlockwise from the first axis.
pub(super) fn horizontal(angle: f64) -> V3 {
    [angle.cos(), angle.sin(), 0.0]
}

/// Turns `a` around the unit vector `axis` (Rodrigues' formula).
pub(super) fn turned(a: V3, axis: V3, angle: f64) -> V3 {
    let (sin, cos) = angle.sin_cos();
    let straight = along(scaled(a, cos), sin, cross(axis, a));
    along(straight, dot(axis, a) * (1.0 - cos), axis)
}

/// Three orthogonal unit vectors: a body's forward, left and up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes(pub(super) [V3; 3]);

// === impl Axes ===

impl Axes {
    pub(super) fn turned(self, axis: V3, angle: f64) -> Self {
        Self(self.0.map(|a| turned(a, axis, angle)))
    }

    /// Coordinates of a room's vector in this frame.
    pub(super) fn of(self, a: V3) -> V3 {
        self.0.map(|own| dot(own, a))
    }

    pub(super) fn forward(self) -> V3 {
        self.0[0]
    }

    pub(super) fn left(self) -> V3 {
        self.0[1]
    }

    pub(super) fn up(self) -> V3 {
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
