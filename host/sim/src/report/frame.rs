//! The axes of a plot.

use super::scale::{Scale, Tick};
use super::svg::{Anchor, Svg};

/// A plot's area inside its drawing, and what its axes mean.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
}

// === impl Frame ===

impl Frame {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * self.x.place(value)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - self.y.place(value))
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// Light lines across, and what they stand for on the left.
    pub(super) fn draw_y(&self, svg: &mut Svg, ticks: &[Tick], unit: &str) {
        for (at, tick) in ticks.iter().enumerate() {
            let y = self.y(tick.value);
            svg.line("rule", (self.left, y), (self.right(), y));
            let unit = if at + 1 == ticks.len() { unit } else { "" };
            let label = format!("{}{unit}", tick.label);
            svg.text("tick", (self.left - 7.0, y + 4.0), Anchor::End, &label);
        }
    }

    /// The base line, its ticks and what they mean.
    pub(super) fn draw_x(&self, svg: &mut Svg, ticks: &[Tick], title: &str) {
        let bottom = self.bottom();
        svg.line("axis", (self.left, bottom), (self.right(), bottom));
        for tick in ticks {
            let x = self.x(tick.value);
            svg.line("axis", (x, bottom), (x, bottom + 4.0));
            svg.text("tick", (x, bottom + 17.0), Anchor::Middle, &tick.label);
        }
        let middle = self.left + self.width / 2.0;
        svg.text("title", (middle, bottom + 34.0), Anchor::Middle, title);
    }
}

/// Ticks at the values themselves, or at round ones where the values are too many.
pub(super) fn ticks_at(scale: &Scale, values: &[f64], labels: &[&str], room: f64) -> Vec<Tick> {
    let places: Vec<f64> = values
        .iter()
        .map(|&value| scale.place(value) * room)
        .collect();
    let widest = labels
        .iter()
        .map(|label| super::svg::text_width(label))
        .fold(0.0, f64::max);
    if places
        .windows(2)
        .all(|pair| pair[1] - pair[0] >= widest + 6.0)
    {
        let ticks = values.iter().zip(labels);
        return ticks
            .map(|(&value, label)| Tick {
                value,
                label: (*label).to_owned(),
            })
            .collect();
    }
    let (low, high) = scale.ends();
    let ticks = scale.ticks(5).into_iter();
    ticks
        .filter(|tick| tick.value >= low && tick.value <= high)
        .collect()
}
