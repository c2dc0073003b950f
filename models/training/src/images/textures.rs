//! Patterns that fill figures and backgrounds: functions of a position to -1..=1.

use std::f32::consts::TAU;

use rand::Rng;
use rand_pcg::Pcg64;

/// Small-scale look of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A slow gradient.
    Plain,
    /// Parallel stripes.
    Striped,
    /// A chequerboard.
    Checked,
    /// Dots on a square grid.
    Dotted,
}

/// A pattern with its direction, period and phase.
pub(super) struct Texture {
    pattern: Pattern,
    /// Unit vector along the pattern's first axis.
    along: [f32; 2],
    /// Radians per pixel.
    frequency: f32,
    phase: [f32; 2],
}

/// Steepness of the transition between a pattern's two colours.
const STEEPNESS: f32 = 2.5;

/// Level of the grid above which it is a dot.
const DOT_LEVEL: f32 = 0.35;

// === impl Pattern ===

impl Pattern {
    /// Every pattern, in order of label.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Striped, Self::Checked, Self::Dotted];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Striped => "striped",
            Self::Checked => "checked",
            Self::Dotted => "dotted",
        }
    }
}

// === impl Texture ===

impl Texture {
    /// `pattern` in a random direction, with a period drawn from `periods` in pixels.
    pub(super) fn draw(pattern: Pattern, periods: [f32; 2], rng: &mut Pcg64) -> Self {
        let (sin, cos) = rng.random_range(0.0..TAU).sin_cos();
        Self {
            pattern,
            along: [cos, sin],
            frequency: TAU / rng.random_range(periods[0]..periods[1]),
            phase: [rng.random_range(0.0..TAU), rng.random_range(0.0..TAU)],
        }
    }

    /// Brightness at a position in pixels, in -1..=1.
    pub(super) fn at(&self, x: f32, y: f32) -> f32 {
        let [cos, sin] = self.along;
        let u = (x * cos + y * sin) * self.frequency + self.phase[0];
        let v = (y * cos - x * sin) * self.frequency + self.phase[1];
        let level = match self.pattern {
            // A sixteenth of a stripe's frequency: less than one wave over a figure.
            Pattern::Plain => return (u / 16.0).sin(),
            Pattern::Striped => u.sin(),
            Pattern::Checked => u.sin() * v.sin() * 2.0,
            Pattern::Dotted => (u.sin() + v.sin()) * 0.5 - DOT_LEVEL,
        };
        (level * STEEPNESS).clamp(-1.0, 1.0)
    }
}
