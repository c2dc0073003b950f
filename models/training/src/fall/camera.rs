//! The camera on the wall: a silhouette per frame, as a segmentation network would output it.

use std::f64::consts::TAU;

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use super::figure::{LIMBS, Limb, limbs};
use super::layout::{FRAMES, SIDE, WINDOW_S};
use super::motion::Motion;
use super::space::{UP, Vector3, cross, dot, horizontal, sub};

/// Pixels of a frame.
const PIXELS: usize = SIDE * SIDE;

/// Share of clips with a piece of furniture between camera and subject.
const OCCLUDED: f64 = 0.3;
/// Share of clips from a room too dark for the segmentation to be reliable.
const DARK: f64 = 0.1;
/// Share of clips with another moving object: a pet, a curtain, a shadow.
const GHOST: f64 = 0.15;
/// Share of frames that arrive late, so that the previous frame is repeated.
const LATE: f64 = 0.05;

/// Position and sharpness of the camera.
struct Camera {
    /// Unit vectors to the right, up and away in the image, in the room's frame.
    right: Vector3,
    up: Vector3,
    away: Vector3,
    /// Point of the room in the middle of the image.
    aim: Vector3,
    /// Pixels per metre at the aim, and distance to it in metres.
    scale: f64,
    distance_m: f64,
}

/// A limb in the image, in pixels.
struct Stroke {
    from: [f64; 2],
    to: [f64; 2],
    radius: f64,
}

/// Objects in the image other than the subject.
struct Scene {
    /// First line hidden, and columns hidden from there down.
    furniture: Option<(usize, std::ops::Range<usize>)>,
    /// Start, step per frame and radius of a blob, in pixels.
    ghost: Option<([f64; 2], [f64; 2], f64)>,
}

/// Faults of the segmentation.
struct Segmentation {
    /// Value of a pixel that is all figure.
    contrast: f64,
    /// Standard deviation of a pixel's noise.
    noise: f64,
    /// Odds that a frame loses a disc of pixels.
    hole: f64,
    /// Pixels by which outlines shrink (negative) or grow.
    bias: f64,
}

/// Appends the clip to `values`: 16 frames of 24 x 24 in 0..1.
pub(super) fn film(motion: &Motion, rng: &mut Pcg64, values: &mut Vec<f32>) {
    let camera = Camera::draw(motion, rng);
    let scene = Scene::draw(rng);
    let segmentation = Segmentation::draw(rng);
    let mut frame = [0.0; PIXELS];
    for index in 0..FRAMES {
        if index == 0 || !rng.random_bool(LATE) {
            let time_s = WINDOW_S * (index as f64 + 0.5) / FRAMES as f64;
            let strokes = limbs(&motion.pose(time_s), motion.leg_m).map(|limb| camera.see(&limb));
            frame = draw(&strokes, segmentation.bias);
            scene.cover(index, &mut frame);
            segmentation.degrade(&mut frame, rng);
        }
        values.extend(frame.iter().map(|&value| value as f32));
    }
}

// === impl Camera ===

impl Camera {
    fn draw(motion: &Motion, rng: &mut Pcg64) -> Self {
        let away_angle = rng.random_range(0.0..TAU);
        let elevation: f64 = rng.random_range(0.0..0.8);
        let flat = horizontal(away_angle);
        let (sin, cos) = elevation.sin_cos();
        let away = [cos * flat[0], cos * flat[1], -sin];
        let right = cross(flat, UP);
        // Near the subject's position at half the window.
        let middle = motion.pose(WINDOW_S / 2.0).hips;
        let mut off = || rng.random_range(-0.4..0.4);
        let aim = [middle[0] + off(), middle[1] + off(), 0.65 + off() / 2.0];
        Self {
            right,
            up: cross(right, away),
            away,
            aim,
            scale: rng.random_range(8.5..13.0),
            distance_m: rng.random_range(2.5..6.0),
        }
    }

    fn see(&self, limb: &Limb) -> Stroke {
        let (from, scale) = self.project(limb.from);
        let (to, _) = self.project(limb.to);
        Stroke {
            from,
            to,
            radius: limb.radius_m * scale,
        }
    }

    /// Column and line of a point, and pixels per metre there.
    fn project(&self, point: Vector3) -> ([f64; 2], f64) {
        let offset = sub(point, self.aim);
        // A subject that walks up to the camera does not walk through it.
        let depth = (self.distance_m + dot(offset, self.away)).max(0.5);
        let scale = self.scale * self.distance_m / depth;
        let middle = SIDE as f64 / 2.0;
        let column = middle + scale * dot(offset, self.right);
        let line = middle - scale * dot(offset, self.up);
        ([column, line], scale)
    }
}

/// Share of each pixel that lies within the strokes, or within `bias` pixels of them.
fn draw(strokes: &[Stroke; LIMBS], bias: f64) -> [f64; PIXELS] {
    let mut frame = [0.0; PIXELS];
    for stroke in strokes {
        let reach = (stroke.radius + bias + 0.5).max(0.0);
        let bounds = |axis: usize| {
            let (a, b) = (stroke.from[axis], stroke.to[axis]);
            let low = (a.min(b) - reach - 0.5).max(0.0) as usize;
            let high = (a.max(b) + reach + 0.5).clamp(0.0, SIDE as f64) as usize;
            low..high
        };
        for line in bounds(1) {
            for column in bounds(0) {
                let centre = [column as f64 + 0.5, line as f64 + 0.5];
                let share = (reach - stroke.distance(centre)).clamp(0.0, 1.0);
                let pixel: &mut f64 = &mut frame[line * SIDE + column];
                *pixel = pixel.max(share);
            }
        }
    }
    frame
}

// === impl Stroke ===

impl Stroke {
    fn distance(&self, point: [f64; 2]) -> f64 {
        let line = [self.to[0] - self.from[0], self.to[1] - self.from[1]];
        let offset = [point[0] - self.from[0], point[1] - self.from[1]];
        let square = (line[0] * line[0] + line[1] * line[1]).max(1e-9);
        let share = ((offset[0] * line[0] + offset[1] * line[1]) / square).clamp(0.0, 1.0);
        length([offset[0] - share * line[0], offset[1] - share * line[1]])
    }
}

/// Not `hypot`: its care for overflow takes longer than the rest of this code.
fn length([column, line]: [f64; 2]) -> f64 {
    (column * column + line * line).sqrt()
}

// === impl Scene ===

impl Scene {
    fn draw(rng: &mut Pcg64) -> Self {
        let furniture = rng.random_bool(OCCLUDED).then(|| {
            let top = rng.random_range(7..19);
            let left = rng.random_range(0..SIDE - 8);
            let width = rng.random_range(6..22);
            (top, left..(left + width).min(SIDE))
        });
        let ghost = rng.random_bool(GHOST).then(|| {
            let side = SIDE as f64;
            let at = [
                rng.random_range(0.0..side),
                rng.random_range(0.4 * side..side),
            ];
            let step = [rng.random_range(-1.2..1.2), rng.random_range(-0.3..0.3)];
            (at, step, rng.random_range(1.2..4.0))
        });
        Self { furniture, ghost }
    }

    fn cover(&self, index: usize, frame: &mut [f64; PIXELS]) {
        if let Some((at, step, radius)) = self.ghost {
            let by = index as f64;
            let at = [at[0] + by * step[0], at[1] + by * step[1]];
            each_in_disc(at, radius, |pixel| frame[pixel] = 1.0);
        }
        if let Some((top, columns)) = &self.furniture {
            for line in frame.chunks_exact_mut(SIDE).skip(*top) {
                line[columns.clone()].fill(0.0);
            }
        }
    }
}

/// Calls `act` with the pixels whose centres lie in a disc.
fn each_in_disc(at: [f64; 2], radius: f64, mut act: impl FnMut(usize)) {
    for pixel in 0..PIXELS {
        let (column, line) = ((pixel % SIDE) as f64 + 0.5, (pixel / SIDE) as f64 + 0.5);
        if length([column - at[0], line - at[1]]) < radius {
            act(pixel);
        }
    }
}

// === impl Segmentation ===

impl Segmentation {
    fn draw(rng: &mut Pcg64) -> Self {
        let dark = rng.random_bool(DARK);
        Self {
            contrast: if dark {
                rng.random_range(0.2..0.5)
            } else {
                rng.random_range(0.6..1.0)
            },
            noise: if dark {
                rng.random_range(0.12..0.28)
            } else {
                rng.random_range(0.01..0.12)
            },
            hole: if dark { 0.6 } else { 0.12 },
            bias: rng.random_range(-0.4..0.4),
        }
    }

    fn degrade(&self, frame: &mut [f64; PIXELS], rng: &mut Pcg64) {
        if rng.random_bool(self.hole) {
            let side = SIDE as f64;
            let at = [rng.random_range(0.0..side), rng.random_range(0.0..side)];
            each_in_disc(at, rng.random_range(2.0..7.0), |pixel| frame[pixel] = 0.0);
        }
        for pixel in frame {
            let noise: f64 = StandardNormal.sample(rng);
            *pixel = (self.contrast * *pixel + self.noise * noise).clamp(0.0, 1.0);
        }
    }
}
