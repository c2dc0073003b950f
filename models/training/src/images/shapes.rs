//! Outlines of the figures, as signed distances: negative inside, in units of the figure's size.
//!
//! Sizes are chosen so that all figures cover about the same area, which then carries no
//! information.

use std::f32::consts::PI;

/// Large-scale shape of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outline {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// An equilateral triangle.
    Triangle,
    /// A five-pointed star.
    Star,
    /// A cross of two bars.
    Cross,
    /// A ring.
    Ring,
}

// === impl Outline ===

impl Outline {
    /// Every outline, in order of label.
    pub const ALL: [Self; 6] = [
        Self::Disc,
        Self::Square,
        Self::Triangle,
        Self::Star,
        Self::Cross,
        Self::Ring,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disc => "disc",
            Self::Square => "square",
            Self::Triangle => "triangle",
            Self::Star => "star",
            Self::Cross => "cross",
            Self::Ring => "ring",
        }
    }

    /// Distance of a point from the outline; the figure's centre is the origin.
    pub(super) fn distance(self, x: f32, y: f32) -> f32 {
        let radius = x.hypot(y);
        match self {
            Self::Disc => radius - 0.8,
            Self::Square => bar(x, y, 0.71, 0.71),
            Self::Triangle => wedges(x, y, 3, 0.62),
            Self::Star => star(x, y),
            Self::Cross => bar(x, y, 1.0, 0.33).min(bar(x, y, 0.33, 1.0)),
            Self::Ring => (radius - 0.72).abs() - 0.23,
        }
    }
}

/// A rectangle of half-sides `a` and `b`.
fn bar(x: f32, y: f32, a: f32, b: f32) -> f32 {
    (x.abs() - a).max(y.abs() - b)
}

/// A regular polygon whose sides are `apothem` from the centre.
fn wedges(x: f32, y: f32, sides: usize, apothem: f32) -> f32 {
    (0..sides)
        .map(|side| {
            let (sin, cos) = (2.0 * PI * side as f32 / sides as f32).sin_cos();
            x * cos + y * sin - apothem
        })
        .fold(f32::MIN, f32::max)
}

/// A star: five lines; a point is inside if it is outside of at most one of them.
fn star(x: f32, y: f32) -> f32 {
    const APOTHEM: f32 = 0.42;
    let mut largest = [f32::MIN; 2];
    for side in 0..5 {
        let (sin, cos) = (2.0 * PI * side as f32 / 5.0).sin_cos();
        let distance = x * cos + y * sin - APOTHEM;
        if distance > largest[0] {
            largest = [distance, largest[0]];
        } else if distance > largest[1] {
            largest[1] = distance;
        }
    }
    largest[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_cover_similar_areas() {
        let area = |outline: Outline| {
            let step = |i: i32| i as f32 / 50.0;
            let inside = (-100..=100)
                .flat_map(|i| (-100..=100).map(move |j| (step(i), step(j))))
                .filter(|&(x, y)| outline.distance(x, y) < 0.0);
            inside.count() as f32 / 2500.0
        };
        for outline in Outline::ALL {
            let area = area(outline);
            assert!((1.3..2.7).contains(&area), "{outline:?}: {area}");
        }
    }
}
