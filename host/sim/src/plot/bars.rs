//! Horizontal bars: one value, or parts of a whole, per row.

use super::axes::Axes;
use super::chart::Chart;
use super::legend;
use super::scale::Scale;
use super::svg::{Anchor, Area, Drawing, text_width};
use super::theme::SeriesId;

/// Height of a bar, and the space below it.
const BAR: f64 = 17.0;
const GAP: f64 = 4.0;

/// Height of a group's heading, and the space below a group.
const HEAD: f64 = 24.0;
const BELOW: f64 = 6.0;

/// Height of the axis.
const FOOT: f64 = 40.0;

/// Bars over a common horizontal axis.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// Title of the horizontal axis, with its unit.
    pub title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// From top to bottom.
    pub groups: Vec<BarGroup>,
    /// Names of series, above the bars.
    pub legend: Vec<(SeriesId, String)>,
}

/// Bars under one heading.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    /// A series as heading, with its marker.
    pub heading: Option<(SeriesId, String)>,
    /// From top to bottom.
    pub rows: Vec<BarRow>,
}

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct BarRow {
    /// Its name, on the left.
    pub name: String,
    /// CSS classes of the name.
    pub class: String,
    /// Its parts, from left to right.
    pub parts: Vec<BarPart>,
    /// Written behind the bar.
    pub shown: String,
    /// Whether the rest of the axis is filled, as a part that is missing from a whole.
    pub has_track: bool,
}

/// A part of a bar.
#[derive(Clone, Debug, Default)]
pub struct BarPart {
    /// CSS classes that set its colour, such as [`SeriesId::class`].
    pub class: String,
    /// Its length, in units of the axis.
    pub value: f64,
    /// Written on it if there is room.
    pub label: String,
    /// Its tooltip.
    pub tip: String,
}

// === impl BarChart ===

impl Chart for BarChart {
    fn height(&self, width: f64) -> f64 {
        let groups: f64 = self.groups.iter().map(BarGroup::height).sum();
        self.legend_height(width) + groups + FOOT
    }

    fn draw(&self, drawing: &mut Drawing, area: Area) {
        legend::legend(drawing, &self.series(), area);
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        let widest =
            |text: fn(&BarRow) -> &str| rows().map(|row| text_width(text(row))).fold(0.0, f64::max);
        let left = 10.0 + widest(|row| &row.name);
        let right = 7.0 + widest(|row| &row.shown);
        let top = area.top + self.legend_height(area.width);
        let height = area.bottom() - FOOT - top;
        let axes = Axes {
            area: Area::new(area.left + left, top, area.width - left - right, height),
            x: self.x,
            y: Scale::default(),
        };
        let mut y = top;
        for group in &self.groups {
            group.draw(drawing, &axes, y);
            y += group.height();
        }
        axes.draw_x(drawing, &self.x.ticks(4), &self.title);
    }

    fn in_words(&self) -> String {
        let groups = self.groups.iter().map(BarGroup::in_words);
        let groups: Vec<String> = groups.collect();
        format!("{}. {}.", self.title, groups.join("; "))
    }
}

impl BarChart {
    fn series(&self) -> Vec<(SeriesId, &str)> {
        let series = self.legend.iter().map(|(id, name)| (*id, name.as_str()));
        series.collect()
    }

    fn legend_height(&self, width: f64) -> f64 {
        legend::height(&self.series(), width)
    }
}

// === impl BarGroup ===

impl BarGroup {
    fn height(&self) -> f64 {
        let head = if self.heading.is_some() { HEAD } else { GAP };
        head + (BAR + GAP) * self.rows.len() as f64 + BELOW
    }

    fn draw(&self, drawing: &mut Drawing, axes: &Axes, top: f64) {
        let mut y = top + GAP;
        if let Some((id, name)) = &self.heading {
            let left = axes.area.left;
            drawing.group(&id.class(), |drawing| {
                drawing.marker(*id, (left + 5.0, top + 13.0), 4.0, "");
                drawing.text("name", (left + 15.0, top + 17.0), Anchor::Start, name);
            });
            y = top + HEAD;
        }
        for row in &self.rows {
            row.draw(drawing, axes, y);
            y += BAR + GAP;
        }
    }

    fn in_words(&self) -> String {
        let heading = self.heading.as_ref().map(|(_, name)| name.as_str());
        let rows = self.rows.iter().map(|row| {
            let name = [heading, Some(row.name.as_str())].into_iter().flatten();
            let name: Vec<&str> = name.filter(|name| !name.is_empty()).collect();
            let tips: Vec<&str> = row.parts.iter().map(|part| part.tip.as_str()).collect();
            format!("{}: {}", name.join(" at "), tips.join(", "))
        });
        rows.collect::<Vec<_>>().join("; ")
    }
}

// === impl BarRow ===

impl BarRow {
    fn draw(&self, drawing: &mut Drawing, axes: &Axes, y: f64) {
        let base = y + BAR - 4.5;
        let left = axes.area.left;
        drawing.group(&self.class, |drawing| {
            let class = if self.class.is_empty() {
                "tick"
            } else {
                "name"
            };
            drawing.text(class, (left - 8.0, base), Anchor::End, &self.name);
        });
        if self.has_track {
            drawing.rect("track", Area::new(left, y, axes.area.width, BAR), "");
        }
        let (mut value, mut x) = (axes.x.ends().0, left);
        for part in &self.parts {
            value += part.value;
            let to = axes.x(value);
            part.draw(drawing, Area::new(x, y, to - x, BAR), base);
            x = to;
        }
        drawing.text("value", (x + 7.0, base), Anchor::Start, &self.shown);
    }
}

// === impl BarPart ===

impl BarPart {
    fn draw(&self, drawing: &mut Drawing, area: Area, base: f64) {
        drawing.group(&self.class, |drawing| {
            drawing.rect("fill", area, &self.tip);
            if area.width > text_width(&self.label) + 10.0 {
                let middle = area.left + area.width / 2.0;
                drawing.text("on", (middle, base), Anchor::Middle, &self.label);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let row = |name: &str, value| BarRow {
            name: name.to_owned(),
            parts: vec![BarPart {
                class: SeriesId(0).class(),
                value,
                tip: format!("{value} per second"),
                ..BarPart::default()
            }],
            shown: value.to_string(),
            ..BarRow::default()
        };
        let chart = BarChart {
            title: "requests per second".to_owned(),
            x: Scale::linear(0.0, 200.0),
            groups: vec![BarGroup {
                heading: None,
                rows: vec![row("a", 100.0), row("b", 200.0)],
            }],
            legend: vec![(SeriesId(0), "served".to_owned())],
        };
        let words = chart.in_words();
        assert_eq!(
            words,
            "requests per second. a: 100 per second; b: 200 per second."
        );
        let svg = chart.drawing(400.0).inline(&words);
        let widths: Vec<f64> = svg
            .split("class=\"fill\"")
            .skip(1)
            .filter_map(|rest| {
                rest.split("width=\"")
                    .nth(1)?
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert!((widths[1] - 2.0 * widths[0]).abs() < 0.3, "{widths:?}");
        assert!(svg.contains(">served</text>"), "{svg}");
    }
}
