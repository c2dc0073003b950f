//! Values over a common horizontal axis: a line per series, with its confidence band and its name.

use super::axes::Axes;
use super::chart::Chart;
use super::labels::spread;
use super::scale::{Scale, Tick};
use super::svg::{Anchor, Area, Drawing, text_width};
use super::theme::SeriesId;
use crate::text::brief;

/// Ticks of the vertical axis, and of a horizontal one without labels of its own; about.
const Y_TICKS: usize = 4;
const X_TICKS: usize = 6;

/// From the end of a line to its name.
const NAME_GAP: f64 = 12.0;

/// Lines of several series.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// Title of the horizontal axis, with its unit.
    pub x_title: String,
    /// Title of the vertical axis, with its unit.
    pub y_title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// Ticks of the horizontal axis; at round numbers if empty.
    pub x_ticks: Vec<Tick>,
    /// The lines; the first is drawn first.
    pub series: Vec<LineSeries>,
    /// Values of the horizontal axis that are marked.
    pub references: Vec<Reference>,
    /// Whether names stand at the ends of the lines.
    pub names: bool,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct LineSeries {
    /// Decides its colour and markers.
    pub id: SeriesId,
    /// Its name.
    pub name: String,
    /// Its points, by ascending `x`; a value that is not finite interrupts the line.
    pub points: Vec<LinePoint>,
    /// Points are alone, with whiskers instead of a band: the horizontal axis has no order.
    pub is_scattered: bool,
}

/// A point of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinePoint {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Half the height of the band around it.
    pub half_width: Option<f64>,
    /// Tooltip of its marker; a point without one has no marker.
    pub tip: String,
}

/// A vertical line at a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// The value on the horizontal axis.
    pub value: f64,
    /// Its name.
    pub label: String,
}

// === impl LineChart ===

impl Chart for LineChart {
    fn height(&self, width: f64) -> f64 {
        (0.675 * width).clamp(160.0, 270.0)
    }

    fn draw(&self, drawing: &mut Drawing, area: Area) {
        let y_ticks = self.y.ticks(Y_TICKS);
        let names = self.series.iter().map(|series| text_width(&series.name));
        let right = match self.names {
            true => 4.0 + NAME_GAP + names.fold(0.0, f64::max),
            false => 20.0,
        };
        let axes = Axes::inside(area, self.x, self.y, &y_ticks, right);
        axes.draw_y(drawing, &y_ticks, &self.y_title);
        match self.x_ticks.as_slice() {
            [] => axes.draw_x(drawing, &self.x.ticks(X_TICKS), &self.x_title),
            ticks => axes.draw_x(drawing, ticks, &self.x_title),
        }
        for reference in &self.references {
            let x = axes.x(reference.value);
            drawing.line("reference", (x, axes.area.top), (x, axes.area.bottom()));
        }
        for series in &self.series {
            series.draw_band(drawing, &axes);
        }
        for series in &self.series {
            series.draw(drawing, &axes);
        }
        for reference in &self.references {
            reference.draw_label(drawing, &axes);
        }
        if self.names {
            self.draw_names(drawing, &axes);
        }
    }

    fn in_words(&self) -> String {
        let series = self.series.iter();
        let series: Vec<String> = series
            .map(|series| series.in_words(|x| self.x_label(x)))
            .collect();
        format!(
            "{} against {}. {}.",
            self.y_title,
            self.x_title,
            series.join("; ")
        )
    }
}

impl LineChart {
    /// The label of the nearest tick that the caller named, or the number.
    fn x_label(&self, x: f64) -> String {
        let distance = |tick: &&Tick| (tick.value - x).abs();
        let nearest = self.x_ticks.iter();
        let nearest = nearest.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map_or_else(|| brief(x), |tick| tick.label.clone())
    }

    /// Each name at the end of its line, moved where names would overlap.
    fn draw_names(&self, drawing: &mut Drawing, axes: &Axes) {
        let ends: Vec<(&LineSeries, (f64, f64))> = self
            .series
            .iter()
            .filter_map(|series| Some((series, series.end(axes)?)))
            .collect();
        let wanted: Vec<f64> = ends.iter().map(|(_, (_, y))| y + 4.0).collect();
        let (low, high) = (axes.area.top + 4.0, axes.area.bottom() + 4.0);
        for ((series, (x, y)), base) in ends.iter().zip(spread(&wanted, low, high)) {
            let start = axes.area.right() + NAME_GAP;
            drawing.group(&series.id.class(), |drawing| {
                if (base - 4.0 - y).abs() > 3.0 {
                    drawing.line("leader", (x + 4.0, *y), (start - 2.0, base - 4.0));
                }
                drawing.text("name", (start, base), Anchor::Start, &series.name);
            });
        }
    }
}

// === impl LineSeries ===

impl LineSeries {
    /// A line through points.
    pub fn new(
        id: SeriesId,
        name: impl Into<String>,
        points: impl IntoIterator<Item = LinePoint>,
    ) -> Self {
        Self {
            id,
            name: name.into(),
            points: points.into_iter().collect(),
            is_scattered: false,
        }
    }

    fn finite(&self) -> impl DoubleEndedIterator<Item = &LinePoint> {
        self.points.iter().filter(|point| point.y.is_finite())
    }

    /// Runs of points without an interruption.
    fn runs(&self) -> impl Iterator<Item = &[LinePoint]> {
        let runs = self.points.split(|point| !point.y.is_finite());
        runs.filter(|run| !run.is_empty())
    }

    fn end(&self, axes: &Axes) -> Option<(f64, f64)> {
        let last = self.finite().next_back()?;
        Some(axes.at(last.x, last.y))
    }

    fn draw_band(&self, drawing: &mut Drawing, axes: &Axes) {
        if self.is_scattered {
            return;
        }
        let (low, high) = axes.y.ends();
        drawing.group(&self.id.class(), |drawing| {
            for run in self.runs() {
                if run
                    .iter()
                    .all(|point| point.half_width.unwrap_or(0.0) <= 0.0)
                {
                    continue;
                }
                let edge = |sign: f64| {
                    run.iter().map(move |point| {
                        let y = point.y + sign * point.half_width.unwrap_or(0.0);
                        axes.at(point.x, y.clamp(low, high))
                    })
                };
                let outline: Vec<_> = edge(1.0).chain(edge(-1.0).rev()).collect();
                drawing.path("band", &outline, true);
            }
        });
    }

    fn draw(&self, drawing: &mut Drawing, axes: &Axes) {
        drawing.group(&self.id.class(), |drawing| {
            if self.is_scattered {
                self.draw_whiskers(drawing, axes);
            } else {
                for run in self.runs() {
                    let line: Vec<_> = run.iter().map(|point| axes.at(point.x, point.y)).collect();
                    drawing.path("line", &line, false);
                }
            }
            for point in self.finite().filter(|point| !point.tip.is_empty()) {
                drawing.marker(self.id, axes.at(point.x, point.y), 3.4, &point.tip);
            }
        });
    }

    fn draw_whiskers(&self, drawing: &mut Drawing, axes: &Axes) {
        let (low, high) = axes.y.ends();
        for point in self.finite() {
            if let Some(half) = point.half_width {
                let [from, to] = [-half, half].map(|by| (point.y + by).clamp(low, high));
                drawing.line("whisker", axes.at(point.x, from), axes.at(point.x, to));
            }
        }
    }

    /// Its first and its last value.
    fn in_words(&self, x_label: impl Fn(f64) -> String) -> String {
        let finite: Vec<&LinePoint> = self.finite().collect();
        let ends = match finite.as_slice() {
            [first, .., last] => vec![first, last],
            few => few.iter().collect(),
        };
        let ends = ends
            .iter()
            .map(|point| format!("{} at {}", brief(point.y), x_label(point.x)));
        format!("{}: {}", self.name, ends.collect::<Vec<_>>().join(", "))
    }
}

// === impl LinePoint ===

impl LinePoint {
    /// A point without a band or a marker.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            ..Self::default()
        }
    }

    /// The same with a band of this half height.
    #[must_use]
    pub fn with_half_width(self, half_width: Option<f64>) -> Self {
        Self { half_width, ..self }
    }

    /// The same with a marker that has this tooltip.
    #[must_use]
    pub fn with_tip(self, tip: impl Into<String>) -> Self {
        Self {
            tip: tip.into(),
            ..self
        }
    }
}

// === impl Reference ===

impl Reference {
    fn draw_label(&self, drawing: &mut Drawing, axes: &Axes) {
        let (x, bottom) = (axes.x(self.value), axes.area.bottom());
        let (x, anchor) = match x > axes.area.left + axes.area.width / 2.0 {
            true => (x - 6.0, Anchor::End),
            false => (x + 6.0, Anchor::Start),
        };
        drawing.text("tick halo", (x, bottom - 8.0), anchor, &self.label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(ys: &[f64]) -> LineChart {
        let points = (0..)
            .zip(ys)
            .map(|(x, &y)| LinePoint::new(f64::from(x), y).with_half_width(Some(0.1)));
        LineChart {
            x: Scale::linear(0.0, 4.0),
            series: vec![LineSeries::new(SeriesId(0), "one", points)],
            names: true,
            ..LineChart::default()
        }
    }

    #[test]
    fn a_value_that_is_not_finite_interrupts_the_line() {
        let svg = chart(&[0.2, 0.3, f64::NAN, 0.4, 0.5])
            .drawing(400.0)
            .inline("");
        assert_eq!(svg.matches("class=\"line\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"band\"").count(), 2, "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn names_of_lines_that_end_together_are_apart() {
        let mut chart = chart(&[0.5, 0.5]);
        for at in 1..4 {
            let series = LineSeries {
                id: SeriesId(at),
                ..chart.series[0].clone()
            };
            chart.series.push(series);
        }
        let svg = chart.drawing(400.0).inline("");
        let mut bases: Vec<f64> = svg
            .split("class=\"name\"")
            .skip(1)
            .filter_map(|rest| rest.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        bases.sort_by(f64::total_cmp);
        assert_eq!(bases.len(), 4);
        assert!(
            bases.windows(2).all(|pair| pair[1] - pair[0] > 13.0),
            "{bases:?}"
        );
        assert_eq!(svg.matches("class=\"leader\"").count(), 3, "{svg}");
    }

    #[test]
    fn a_chart_without_points_is_drawn() {
        let svg = chart(&[]).drawing(400.0).inline("");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
