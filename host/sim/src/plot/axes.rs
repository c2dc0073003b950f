//! The plotting area of a chart: its scales, ticks and titles.

use super::scale::{Scale, Tick};
use super::svg::{Anchor, Area, Drawing, text_width};

/// Between the upper edge of a chart and its plotting area: the title of the vertical axis.
const HEAD: f64 = 28.0;

/// Between the plotting area and the lower edge: labels and title of the horizontal axis.
const FOOT: f64 = 42.0;

/// Least space between two labels on the horizontal axis.
const LABEL_GAP: f64 = 6.0;

/// Least distance between two labels on the vertical axis.
const LABEL_PITCH: f64 = 13.0;

/// A plotting area and the scales of its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axes {
    /// Where values are drawn.
    pub area: Area,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
}

// === impl Axes ===

impl Axes {
    /// Inside `outer`, leaving room for ticks and titles and `right` units for names.
    pub fn inside(outer: Area, x: Scale, y: Scale, y_ticks: &[Tick], right: f64) -> Self {
        let left = 2.0 + label_width(y_ticks);
        let width = outer.width - left - right;
        let height = outer.height - HEAD - FOOT;
        Self {
            area: Area::new(outer.left + left, outer.top + HEAD, width, height),
            x,
            y,
        }
    }

    /// The horizontal position of a value.
    pub fn x(&self, value: f64) -> f64 {
        self.area.left + self.area.width * self.x.share(value)
    }

    /// The vertical position of a value.
    pub fn y(&self, value: f64) -> f64 {
        self.area.top + self.area.height * (1.0 - self.y.share(value))
    }

    /// The position of a pair of values.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// Draws a rule and a label per tick, and the title above them. Labels that would overlap are
    /// left out.
    pub fn draw_y(&self, drawing: &mut Drawing, ticks: &[Tick], title: &str) {
        let (left, right) = (self.area.left, self.area.right());
        let mut free_below = f64::INFINITY;
        for tick in ticks {
            let y = self.y(tick.value);
            drawing.line("rule", (left, y), (right, y));
            if y <= free_below {
                drawing.text("tick", (left - 7.0, y + 4.0), Anchor::End, &tick.label);
                free_below = y - LABEL_PITCH;
            }
        }
        let title = titled(title, self.y);
        let at = (left - label_width(ticks), self.area.top - 13.0);
        drawing.text("title", at, Anchor::Start, &title);
    }

    /// Draws the base line, a tick and a label per tick, and the title below them. Labels that would
    /// overlap are left out.
    pub fn draw_x(&self, drawing: &mut Drawing, ticks: &[Tick], title: &str) {
        let bottom = self.area.bottom();
        drawing.line(
            "axis",
            (self.area.left, bottom),
            (self.area.right(), bottom),
        );
        let mut free_from = f64::NEG_INFINITY;
        for tick in ticks {
            let x = self.x(tick.value);
            drawing.line("axis", (x, bottom), (x, bottom + 4.0));
            let half = text_width(&tick.label) / 2.0;
            if x - half >= free_from {
                drawing.text("tick", (x, bottom + 17.0), Anchor::Middle, &tick.label);
                free_from = x + half + LABEL_GAP;
            }
        }
        let middle = self.area.left + self.area.width / 2.0;
        let title = titled(title, self.x);
        drawing.text("title", (middle, bottom + 35.0), Anchor::Middle, &title);
    }
}

/// Room for the labels of the vertical axis.
fn label_width(ticks: &[Tick]) -> f64 {
    let labels = ticks.iter().map(|tick| text_width(&tick.label));
    7.0 + labels.fold(24.0, f64::max)
}

/// The title of an axis says when its scale is logarithmic.
fn titled(title: &str, scale: Scale) -> String {
    match (scale.is_log(), title) {
        (false, title) => title.to_owned(),
        (true, "") => "log scale".to_owned(),
        (true, title) => format!("{title} (log scale)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(x: Scale) -> Axes {
        Axes::inside(
            Area::new(0.0, 0.0, 400.0, 270.0),
            x,
            Scale::default(),
            &[],
            0.0,
        )
    }

    #[test]
    fn a_logarithmic_axis_says_so() {
        let log = Scale::fitting(&[1.0, 900.0], false, 4);
        for (scale, title) in [
            (log, ">latency, ms (log scale)<"),
            (Scale::default(), ">latency, ms<"),
        ] {
            let mut drawing = Drawing::new(400.0, 270.0);
            axes(scale).draw_x(&mut drawing, &[], "latency, ms");
            assert!(drawing.inline("").contains(title), "{title}");
        }
    }

    #[test]
    fn labels_that_would_overlap_are_left_out() {
        let mut drawing = Drawing::new(400.0, 270.0);
        let ticks: Vec<Tick> = (0..40)
            .map(|at| Tick {
                value: f64::from(at) / 39.0,
                label: format!("load {at}"),
            })
            .collect();
        axes(Scale::default()).draw_x(&mut drawing, &ticks, "");
        let svg = drawing.inline("");
        let labels = svg.matches(">load ").count();
        assert!((4..9).contains(&labels), "{labels} labels");
        assert_eq!(svg.matches("<line").count(), 41, "each has its tick");
    }
}
