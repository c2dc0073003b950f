//! Lines over one axis in panels, as SVG.

use std::fmt::Write as _;

/// A panel with a scale of its own.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) name: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// A line with its colour and what it is called beside the panel.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) places: Vec<Place>,
}

/// A point of a line. What is `deviation` above and below it is shaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) deviation: f64,
}

/// Where a panel is, and what its scales are.
struct Frame {
    top: f64,
    low: f64,
    high: f64,
    /// The largest x.
    last: f64,
}

const WIDTH: f64 = 720.0;
const PANEL: f64 = 150.0;
const BETWEEN: f64 = 34.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 110.0;

/// Panels one below the other.
pub(crate) fn svg(title: &str, axis: &str, panels: &[Panel]) -> String {
    let below = panels.len() as f64 * (PANEL + BETWEEN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{}</text>\n",
        below + 50.0,
        escaped(title),
    );
    for (p, panel) in panels.iter().enumerate() {
        let top = 44.0 + p as f64 * (PANEL + BETWEEN);
        draw(&mut out, panel, &Frame::of(panel, top));
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\">{axis}</text>\n</svg>",
        below + 36.0
    );
    out
}

fn draw(out: &mut String, panel: &Panel, frame: &Frame) {
    let top = frame.top;
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\">{}</text>\n\
         <rect x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{PANEL}\" fill=\"none\" \
         stroke=\"#bbbbbb\"/>",
        top - 5.0,
        panel.name,
        WIDTH - LEFT - RIGHT,
    );
    for tick in 0..=4 {
        let share = f64::from(tick) / 4.0;
        let value = frame.low + (frame.high - frame.low) * share;
        let x = frame.last * share;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{x:.1}</text>",
            LEFT - 5.0,
            frame.y(value) + 4.0,
            frame.x(x),
            top + PANEL + 13.0,
        );
    }
    for (l, line) in panel.lines.iter().enumerate() {
        let (name, colour) = (line.name, line.colour);
        if line.places.iter().any(|place| place.deviation > 0.0) {
            let above = line.places.iter().map(|p| (p.x, p.y + p.deviation));
            let below = line.places.iter().rev().map(|p| (p.x, p.y - p.deviation));
            let places = frame.places(above.chain(below));
            let _ = writeln!(
                out,
                "<polygon points=\"{places}\" fill=\"{colour}\" fill-opacity=\"0.2\"/>"
            );
        }
        let places = frame.places(line.places.iter().map(|p| (p.x, p.y)));
        let _ = writeln!(
            out,
            "<polyline points=\"{places}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.2\"/><text x=\"{}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            WIDTH - RIGHT + 8.0,
            top + 14.0 + 15.0 * l as f64,
        );
    }
}

// === impl Frame ===

impl Frame {
    fn of(panel: &Panel, top: f64) -> Self {
        let places = || panel.lines.iter().flat_map(|line| &line.places);
        let low = places()
            .map(|p| p.y - p.deviation)
            .fold(f64::INFINITY, f64::min);
        let high = places()
            .map(|p| p.y + p.deviation)
            .fold(f64::NEG_INFINITY, f64::max);
        let last = places().map(|p| p.x).fold(f64::MIN_POSITIVE, f64::max);
        let (low, high) = if low < high {
            (low, high)
        } else {
            (0.0, 100.0)
        };
        Self {
            top,
            low,
            high,
            last,
        }
    }

    fn x(&self, x: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * x / self.last
    }

    fn y(&self, y: f64) -> f64 {
        self.top + PANEL * (self.high - y) / (self.high - self.low)
    }

    fn places(&self, places: impl Iterator<Item = (f64, f64)>) -> String {
        let places = places.map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y)));
        places.collect::<Vec<_>>().join(" ")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
