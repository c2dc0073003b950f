//! The few elements that plots are drawn with. Colours are CSS classes, so that they follow the
//! theme; names are escaped here.

use std::fmt::Write;

use super::palette::policy_class;
use super::text::escape;

/// A drawing.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text stands at its place.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

// === impl Svg ===

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    pub(super) fn open(&mut self, class: &str) {
        let _ = write!(self.body, "<g class=\"{class}\">");
    }

    pub(super) fn close(&mut self) {
        self.body.push_str("</g>");
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(short);
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        );
    }

    pub(super) fn rect(&mut self, class: &str, [x, y, w, h]: [f64; 4], title: &str) {
        let [x, y, w, h] = [x, y, w.max(0.0), h.max(0.0)].map(short);
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\""
        );
        self.end_with("rect", title);
    }

    /// A line through places, or the area inside them.
    pub(super) fn path(&mut self, class: &str, places: &[(f64, f64)], closed: bool) {
        if places.is_empty() {
            return;
        }
        let _ = write!(self.body, "<path class=\"{class}\" d=\"");
        for (at, &(x, y)) in places.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            let _ = write!(self.body, "{letter}{} {}", short(x), short(y));
        }
        self.body.push_str(if closed { "Z\"/>" } else { "\"/>" });
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
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

    /// The mark of a policy: a shape beside the colour tells it apart.
    pub(super) fn marker(&mut self, policy: usize, place: (f64, f64), radius: f64, title: &str) {
        let d = marker_path(policy, place, radius);
        let _ = write!(self.body, "<path class=\"mark\" d=\"{d}\"");
        self.end_with("path", title);
    }

    fn end_with(&mut self, element: &str, title: &str) {
        match title {
            "" => self.body.push_str("/>"),
            title => {
                let title = escape(title);
                let _ = write!(self.body, "><title>{title}</title></{element}>");
            }
        }
    }

    /// The element, with what it shows in words for those who do not see it.
    pub(super) fn finish(self, label: &str) -> String {
        let (width, height) = (short(self.width), short(self.height));
        let (label, body) = (escape(label), self.body);
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{body}</svg>"
        )
    }
}

/// The mark of a policy in a line of text.
pub(super) fn inline_marker(policy: usize) -> String {
    let d = marker_path(policy, (7.0, 7.0), 4.6);
    format!(
        "<svg class=\"key {}\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">\
         <path class=\"mark\" d=\"{d}\"/></svg>",
        policy_class(policy)
    )
}

/// The outline of a policy's marker; all have about the same area.
fn marker_path(policy: usize, (x, y): (f64, f64), r: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let places = corners
            .iter()
            .map(|(dx, dy)| format!("{} {}", short(x + r * dx), short(y + r * dy)));
        format!("M{}Z", places.collect::<Vec<_>>().join("L"))
    };
    match policy % 8 {
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

/// A tenth of a unit is finer than a screen.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// About how wide a text is at most, in units of a drawing whose text is 12 units high.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.0
}
