//! Learning curves: what each update saw, as CSV and as a plot.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::learner::Seen;

/// One update on the curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which one, from 1.
    pub update: u64,
    /// Slots learnt from until then.
    pub slots: u64,
    /// Mean reward of a slot (eq. 2).
    pub reward: f64,
    /// All requests, those of slots that began in the first phase, in the second; with the
    /// noise of training.
    pub parts: [Ratios; 3],
    /// Without noise, on arrivals kept apart for this, where it was looked at.
    pub validation: Option<Ratios>,
    /// Mean squared error of the values over their targets' variance.
    pub unexplained: f64,
    /// Share of the samples that were clipped.
    pub clipped: f64,
}

/// What counts, as shares of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Accuracy of what was in time.
    pub goodput: f64,
    /// Late or rejected.
    pub violation: f64,
    /// Answered by the first model.
    pub heavy: f64,
}

// === impl Point ===

impl Point {
    /// Of an update.
    #[must_use]
    pub fn new(update: u64, slots: u64, seen: &Seen) -> Self {
        let mut all = seen.counts[0];
        all.add(&seen.counts[1]);
        let parts = [all, seen.counts[0], seen.counts[1]].map(|slot| Ratios {
            goodput: slot.goodput_ratio(),
            violation: slot.violation_ratio(),
            heavy: slot.heavy_ratio(),
        });
        Self {
            update,
            slots,
            reward: seen.reward,
            parts,
            validation: None,
            unexplained: seen.unexplained,
            clipped: seen.clipped,
        }
    }
}

/// The curve as CSV, with a head line.
#[must_use]
pub fn csv(points: &[Point]) -> String {
    let mut text = String::from(
        "update,slots,reward,goodput,violation,heavy,goodput_0,violation_0,heavy_0,\
         goodput_1,violation_1,heavy_1,validation_goodput,validation_violation,validation_heavy,\
         unexplained,clipped\n",
    );
    for point in points {
        let _ = write!(text, "{},{},{:.4}", point.update, point.slots, point.reward);
        let parts = point.parts.iter().map(Some);
        for part in parts.chain([point.validation.as_ref()]) {
            let _ = match part {
                Some(r) => write!(text, ",{:.5},{:.5},{:.5}", r.goodput, r.violation, r.heavy),
                None => write!(text, ",,,"),
            };
        }
        let _ = writeln!(text, ",{:.4},{:.4}", point.unexplained, point.clipped);
    }
    text
}

const WIDTH: f64 = 720.0;
const PANEL: f64 = 150.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 110.0;

/// The curve as a plot: goodput, violations and use of the first model against slots, each for
/// all requests, for the first phase and for the second, and what validation saw.
#[must_use]
pub fn svg(title: &str, points: &[Point]) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{}</text>\n",
        3.0 * (PANEL + 34.0) + 50.0,
        escaped(title),
    );
    let panels: [(&str, Value); 3] = [
        ("goodput ratio, %", |r| 100.0 * r.goodput),
        ("violation ratio, %", |r| 100.0 * r.violation),
        ("answered by the first model, %", |r| 100.0 * r.heavy),
    ];
    for (p, (name, of)) in panels.into_iter().enumerate() {
        let top = 44.0 + p as f64 * (PANEL + 34.0);
        panel(&mut out, name, points, top, of);
    }
    let y = 3.0 * (PANEL + 34.0) + 36.0;
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{y}\">million slots of training</text>\n</svg>"
    );
    out
}

/// What a panel shows of an evaluation.
type Value = fn(&Ratios) -> f64;

type Line<'a> = (&'a str, &'a str, Vec<(f64, f64)>);

fn panel(out: &mut String, name: &str, points: &[Point], top: f64, of: Value) {
    let million = |point: &Point| point.slots as f64 / 1e6;
    let part = |p: usize| {
        points
            .iter()
            .map(move |point| (million(point), of(&point.parts[p])))
    };
    let checked = points.iter();
    let checked = checked.filter_map(|p| Some((million(p), of(p.validation.as_ref()?))));
    let lines: [Line<'_>; 4] = [
        ("all", "#555555", part(0).collect()),
        ("first phase", "#d55e00", part(1).collect()),
        ("second phase", "#0072b2", part(2).collect()),
        ("validation", "#009e73", checked.collect()),
    ];
    let values = lines.iter().flat_map(|line| &line.2).map(|point| point.1);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| {
        (low.min(y), high.max(y))
    });
    let (low, high) = if low < high {
        (low, high)
    } else {
        (0.0, 100.0)
    };
    let last = points.last().map_or(1.0, million).max(f64::MIN_POSITIVE);
    let width = WIDTH - LEFT - RIGHT;
    let x = |million: f64| LEFT + width * million / last;
    let y = |value: f64| top + PANEL * (high - value) / (high - low);
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\">{name}</text>\n\
         <rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{PANEL}\" fill=\"none\" \
         stroke=\"#bbbbbb\"/>",
        top - 5.0
    );
    for tick in 0..=4 {
        let share = f64::from(tick) / 4.0;
        let (value, million) = (low + (high - low) * share, last * share);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{million:.1}</text>",
            LEFT - 5.0,
            y(value) + 4.0,
            x(million),
            top + PANEL + 13.0,
        );
    }
    for (l, (name, colour, line)) in lines.iter().enumerate() {
        let places: Vec<String> = line
            .iter()
            .map(|&(million, value)| format!("{:.1},{:.1}", x(million), y(value)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{colour}\">{name}</text>",
            places.join(" "),
            WIDTH - RIGHT + 8.0,
            top + 14.0 + 15.0 * l as f64,
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<Point> {
        let point = |update: u64| Point {
            update,
            slots: update * 50_000,
            validation: update.is_multiple_of(2).then(Ratios::default),
            ..Point::default()
        };
        (1..=4).map(point).collect()
    }

    #[test]
    fn every_line_of_the_csv_has_every_column() {
        let text = csv(&points());
        let columns = |line: &str| line.matches(',').count();
        let first = text.lines().next().map(columns);
        assert_eq!(text.lines().count(), 5);
        assert!(
            text.lines().all(|line| Some(columns(line)) == first),
            "{text}"
        );
    }

    #[test]
    fn the_plot_is_drawn_with_no_points_too() {
        for points in [&[][..], &points()] {
            let text = svg("a < b", points);
            assert!(text.contains("a &lt; b") && !text.contains("NaN"), "{text}");
        }
    }
}
