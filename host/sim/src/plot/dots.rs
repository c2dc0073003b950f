//! One value per row, with its interval: names on the left, values on the right.

use super::axes::Axes;
use super::chart::Chart;
use super::scale::Scale;
use super::svg::{Anchor, Area, Drawing, text_width};
use super::theme::SeriesId;

/// Height of a row, and of everything below the last one.
const ROW: f64 = 30.0;
const FOOT: f64 = 48.0;

/// A dot per row over a common horizontal axis.
#[derive(Clone, Debug, Default)]
pub struct DotChart {
    /// Title of the horizontal axis, with its unit.
    pub title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// From top to bottom.
    pub rows: Vec<DotRow>,
}

/// One row.
#[derive(Clone, Debug, Default)]
pub struct DotRow {
    /// Decides its colour and marker.
    pub id: SeriesId,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Half the width of its interval.
    pub half_width: Option<f64>,
    /// The value as it is written behind the dot.
    pub shown: String,
    /// Tooltip of the dot, and text alternative.
    pub tip: String,
}

// === impl DotChart ===

impl Chart for DotChart {
    fn height(&self, _width: f64) -> f64 {
        6.0 + ROW * self.rows.len() as f64 + FOOT
    }

    fn draw(&self, drawing: &mut Drawing, area: Area) {
        let widest = |text: fn(&DotRow) -> &str| {
            let widths = self.rows.iter().map(|row| text_width(text(row)));
            widths.fold(0.0, f64::max)
        };
        let left = 16.0 + widest(|row| &row.name);
        let right = 14.0 + widest(|row| &row.shown);
        let height = ROW * self.rows.len() as f64;
        let axes = Axes {
            area: Area::new(
                area.left + left,
                area.top + 6.0,
                area.width - left - right,
                height,
            ),
            x: self.x,
            y: Scale::default(),
        };
        let ticks = self.x.ticks(4);
        for tick in &ticks {
            let x = axes.x(tick.value);
            drawing.line("rule", (x, axes.area.top), (x, axes.area.bottom()));
        }
        axes.draw_x(drawing, &ticks, &self.title);
        for (row, dot) in (0..).zip(&self.rows) {
            let y = axes.area.top + ROW * (f64::from(row) + 0.5);
            dot.draw(
                drawing,
                y,
                axes.area.left,
                |value| axes.x(value),
                axes.x.ends(),
            );
        }
    }

    fn in_words(&self) -> String {
        let rows: Vec<&str> = self.rows.iter().map(|row| row.tip.as_str()).collect();
        format!("{}. {}.", self.title, rows.join("; "))
    }
}

// === impl DotRow ===

impl DotRow {
    fn draw(
        &self,
        drawing: &mut Drawing,
        y: f64,
        left: f64,
        place: impl Fn(f64) -> f64,
        (low, high): (f64, f64),
    ) {
        let x = place(self.value);
        let reach = self
            .half_width
            .map(|half| [-half, half].map(|by| place((self.value + by).clamp(low, high))));
        drawing.group(&self.id.class(), |drawing| {
            drawing.text("name", (left - 10.0, y + 4.0), Anchor::End, &self.name);
            if let Some([from, to]) = reach {
                drawing.line("whisker", (from, y), (to, y));
            }
            drawing.marker(self.id, (x, y), 4.4, &self.tip);
        });
        let right = reach.map_or(x, |[_, to]| to).max(x + 4.0);
        drawing.text("value", (right + 7.0, y + 4.0), Anchor::Start, &self.shown);
    }
}
