//! Pairs of values: a point per pair with intervals both ways, joined per series.

use super::axes::Axes;
use super::chart::Chart;
use super::labels::LabelPlacer;
use super::scale::Scale;
use super::svg::{Anchor, Area, Drawing};
use super::theme::SeriesId;

/// A name farther than this from its point gets a line to it.
const LEADER_FROM: f64 = 18.0;

/// Curves through points in a plane.
#[derive(Clone, Debug, Default)]
pub struct ScatterChart {
    /// Title of the horizontal axis, with its unit.
    pub x_title: String,
    /// Title of the vertical axis, with its unit.
    pub y_title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// The curves; the first is drawn first.
    pub series: Vec<ScatterSeries>,
}

/// One curve; its name stands at its last point.
#[derive(Clone, Debug, Default)]
pub struct ScatterSeries {
    /// Decides its colour and markers.
    pub id: SeriesId,
    /// Its name.
    pub name: String,
    /// Its points, in the order in which they are joined.
    pub points: Vec<ScatterPoint>,
}

/// One point.
#[derive(Clone, Debug, Default)]
pub struct ScatterPoint {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Half the width of its horizontal interval.
    pub x_half_width: Option<f64>,
    /// Half the height of its vertical interval.
    pub y_half_width: Option<f64>,
    /// Radius of its marker.
    pub radius: f64,
    /// Tooltip of its marker, and text alternative.
    pub tip: String,
}

// === impl ScatterChart ===

impl Chart for ScatterChart {
    fn height(&self, width: f64) -> f64 {
        (0.675 * width).clamp(160.0, 400.0)
    }

    fn draw(&self, drawing: &mut Drawing, area: Area) {
        let y_ticks = self.y.ticks(4);
        let axes = Axes::inside(area, self.x, self.y, &y_ticks, 14.0);
        axes.draw_y(drawing, &y_ticks, &self.y_title);
        axes.draw_x(drawing, &self.x.ticks(5), &self.x_title);
        let mut placer = LabelPlacer::new(axes.area);
        for series in &self.series {
            series.draw(drawing, &axes);
            for point in &series.points {
                placer.avoid(axes.at(point.x, point.y), point.radius + 2.0);
            }
        }
        for series in &self.series {
            series.draw_name(drawing, &axes, &mut placer);
        }
    }

    fn in_words(&self) -> String {
        let points = self.series.iter().flat_map(|series| {
            let (first, rest) = series.points.split_first()?;
            let tips = [Some(first), rest.last()].into_iter().flatten();
            let tips: Vec<&str> = tips.map(|point| point.tip.as_str()).collect();
            Some(tips.join("; "))
        });
        let points: Vec<String> = points.collect();
        format!(
            "{} against {}. {}.",
            self.y_title,
            self.x_title,
            points.join("; ")
        )
    }
}

// === impl ScatterSeries ===

impl ScatterSeries {
    fn draw(&self, drawing: &mut Drawing, axes: &Axes) {
        let line: Vec<_> = self
            .points
            .iter()
            .map(|point| axes.at(point.x, point.y))
            .collect();
        drawing.group(&self.id.class(), |drawing| {
            drawing.path("line thin", &line, false);
            for point in &self.points {
                point.draw_intervals(drawing, axes);
            }
            for (point, at) in self.points.iter().zip(line) {
                drawing.marker(self.id, at, point.radius, &point.tip);
            }
        });
    }

    fn draw_name(&self, drawing: &mut Drawing, axes: &Axes, placer: &mut LabelPlacer) {
        let Some(last) = self.points.last() else {
            return;
        };
        let (x, y) = axes.at(last.x, last.y);
        let (start, base) = placer.place((x, y), &self.name);
        let middle = base - 4.0;
        drawing.group(&self.id.class(), |drawing| {
            if (middle - y).abs() > LEADER_FROM {
                let side = if start > x { start - 2.0 } else { x };
                drawing.line("leader", (x, y), (side, middle));
            }
            drawing.text("name halo", (start, base), Anchor::Start, &self.name);
        });
    }
}

// === impl ScatterPoint ===

impl ScatterPoint {
    fn draw_intervals(&self, drawing: &mut Drawing, axes: &Axes) {
        let within = |(low, high): (f64, f64), value: f64| value.clamp(low, high);
        if let Some(half) = self.x_half_width {
            let [from, to] = [-half, half].map(|by| within(axes.x.ends(), self.x + by));
            drawing.line("whisker faint", axes.at(from, self.y), axes.at(to, self.y));
        }
        if let Some(half) = self.y_half_width {
            let [from, to] = [-half, half].map(|by| within(axes.y.ends(), self.y + by));
            drawing.line("whisker faint", axes.at(self.x, from), axes.at(self.x, to));
        }
    }
}
