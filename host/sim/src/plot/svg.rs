//! The elements that plots are drawn with. Colours are CSS classes; names are escaped here.

use std::fmt::Write;

use super::theme::{SeriesId, file_style};
use crate::text::escape;

/// A rectangle, in units of the drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Upper edge; positions grow downwards.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// An SVG under construction. One unit is one CSS pixel at full size; text is 12 units high.
#[derive(Clone, Debug)]
pub struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

/// The end of a text that is put at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its start.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

// === impl Area ===

impl Area {
    /// From its left upper corner and its size.
    pub const fn new(left: f64, top: f64, width: f64, height: f64) -> Self {
        Self {
            left,
            top,
            width,
            height,
        }
    }

    /// Right edge.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Size of the common part of two areas.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        let width = self.right().min(other.right()) - self.left.max(other.left);
        let height = self.bottom().min(other.bottom()) - self.top.max(other.top);
        width.max(0.0) * height.max(0.0)
    }
}

// === impl Drawing ===

impl Drawing {
    /// An empty drawing of this size.
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    /// All of it.
    pub fn area(&self) -> Area {
        Area::new(0.0, 0.0, self.width, self.height)
    }

    /// Elements that share CSS classes.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.body, "<g class=\"{class}\">");
        draw(self);
        self.body.push_str("</g>");
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(short);
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        );
    }

    /// A rectangle, with a tooltip unless `tip` is empty.
    pub fn rect(&mut self, class: &str, area: Area, tip: &str) {
        let (width, height) = (area.width.max(0.0), area.height.max(0.0));
        let [x, y, w, h] = [area.left, area.top, width, height].map(short);
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\""
        );
        self.end_with("rect", tip);
    }

    /// A line through positions, or the area that they enclose.
    pub fn path(&mut self, class: &str, positions: &[(f64, f64)], closed: bool) {
        if positions.is_empty() {
            return;
        }
        let _ = write!(self.body, "<path class=\"{class}\" d=\"");
        for (at, &(x, y)) in positions.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            let _ = write!(self.body, "{letter}{} {}", short(x), short(y));
        }
        self.body.push_str(if closed { "Z\"/>" } else { "\"/>" });
    }

    /// A text whose base line is at `y`.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (short(x), short(y), escape(text));
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// The marker of a series, inside a [`group`](Self::group) of its class.
    pub fn marker(&mut self, series: SeriesId, at: (f64, f64), radius: f64, tip: &str) {
        let d = marker_outline(series, at, radius);
        let _ = write!(self.body, "<path class=\"mark\" d=\"{d}\"");
        self.end_with("path", tip);
    }

    fn end_with(&mut self, element: &str, tip: &str) {
        match tip {
            "" => self.body.push_str("/>"),
            tip => {
                let tip = escape(tip);
                let _ = write!(self.body, "><title>{tip}</title></{element}>");
            }
        }
    }

    /// An element for a page that carries [`style`](super::style); `label` is the text alternative.
    pub fn inline(self, label: &str) -> String {
        let (width, height) = (short(self.width), short(self.height));
        let (label, body) = (escape(label), self.body);
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{body}</svg>"
        )
    }

    /// A file of its own, with its style and an opaque ground in both themes.
    pub fn standalone(self, label: &str) -> String {
        let (width, height) = (short(self.width), short(self.height));
        let (label, body, style) = (escape(label), self.body, file_style());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n\
             <style>\n{style}\n</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{body}\n</svg>\n"
        )
    }
}

/// The marker of a series in a line of text.
pub fn inline_marker(series: SeriesId) -> String {
    let d = marker_outline(series, (7.0, 7.0), 4.6);
    format!(
        "<svg class=\"key {}\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">\
         <path class=\"mark\" d=\"{d}\"/></svg>",
        series.class()
    )
}

/// The outline of a series' marker; all have about the same area.
fn marker_outline(series: SeriesId, (x, y): (f64, f64), r: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let corners = corners
            .iter()
            .map(|(dx, dy)| format!("{} {}", short(x + r * dx), short(y + r * dy)));
        format!("M{}Z", corners.collect::<Vec<_>>().join("L"))
    };
    match series.0 % 8 {
        0 => {
            let (left, right, y, r) = (short(x - r), short(x + r), short(y), short(r));
            format!("M{left} {y}A{r} {r} 0 1 1 {right} {y}A{r} {r} 0 1 1 {left} {y}Z")
        }
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)]),
        5 => polygon(&[(-1.3, -0.5), (1.3, -0.5), (1.3, 0.5), (-1.3, 0.5)]),
        6 => polygon(&[(-0.5, -1.3), (0.5, -1.3), (0.5, 1.3), (-0.5, 1.3)]),
        _ => polygon(&[
            (0.0, -1.2),
            (1.2, -0.3),
            (0.7, 1.1),
            (-0.7, 1.1),
            (-1.2, -0.3),
        ]),
    }
}

/// A coordinate to a tenth of a unit.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// An upper estimate of the width of a text that is 12 units high.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_size_a_style_and_a_ground() {
        let mut drawing = Drawing::new(40.0, 30.5);
        drawing.text("value", (1.0, -0.04), Anchor::Start, "a < b");
        let file = drawing.standalone("less \"than\"");
        for part in [
            "width=\"40\" height=\"30.5\"",
            "<style>",
            "class=\"paper\"",
            "a &lt; b",
            "y=\"0\"",
            "less &quot;than&quot;",
        ] {
            assert!(file.contains(part), "{part} is missing in {file}");
        }
    }
}
