//! Learning curves as CSV and as a plot.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use switchyard_sim::plot::{Chart, LineChart, LinePoint, LineSeries, Scale, SeriesId, stacked};

use crate::rollout::PHASES;
use crate::stats::UpdateStats;

/// One update on the curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Number of the update, from 1.
    pub update: u64,
    /// Slots up to this update.
    pub slots: u64,
    /// Mean reward of a slot (eq. 2).
    pub reward: f64,
    /// All requests, those of slots that began in the first phase, and in the second; with noise.
    pub parts: [Ratios; 3],
    /// Without noise, on validation arrivals; none if not validated.
    pub validation: Option<Ratios>,
    /// At validation, by phase and model, the means of the minimum and maximum batch, if the
    /// network chooses them.
    pub bounds: Vec<(f64, f64)>,
    /// Mean squared error of the values over the variance of their targets.
    pub unexplained: f64,
    /// Share of clipped samples.
    pub clipped: f64,
}

/// Ratios over the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Sum of accuracies of requests in time, over all.
    pub goodput: f64,
    /// Late or rejected.
    pub violation: f64,
    /// Answered by the first model.
    pub heavy: f64,
}

// === impl CurvePoint ===

impl CurvePoint {
    /// The point of an update.
    #[must_use]
    pub fn new(update: u64, slots: u64, stats: &UpdateStats) -> Self {
        let mut all = stats.counts[0];
        all.add(&stats.counts[1]);
        let parts = [all, stats.counts[0], stats.counts[1]].map(|slot| Ratios {
            goodput: slot.goodput_ratio(),
            violation: slot.violation_ratio(),
            heavy: slot.heavy_ratio(),
        });
        Self {
            update,
            slots,
            reward: stats.reward,
            parts,
            validation: None,
            bounds: Vec::new(),
            unexplained: stats.unexplained,
            clipped: stats.clipped,
        }
    }
}

/// The curve as CSV with a header.
#[must_use]
pub fn csv(points: &[CurvePoint]) -> String {
    let mut text = String::from(
        "update,slots,reward,goodput,violation,heavy,goodput_0,violation_0,heavy_0,\
         goodput_1,violation_1,heavy_1,validation_goodput,validation_violation,validation_heavy,\
         unexplained,clipped",
    );
    let pairs = points.iter().map(|point| point.bounds.len()).max();
    let pairs = pairs.unwrap_or(0);
    let models = (pairs / PHASES).max(1);
    for pair in 0..pairs {
        let (phase, model) = (pair / models, pair % models);
        let _ = write!(text, ",min_{phase}_{model},max_{phase}_{model}");
    }
    text.push('\n');
    for point in points {
        let _ = write!(text, "{},{},{:.4}", point.update, point.slots, point.reward);
        let parts = point.parts.iter().map(Some);
        for part in parts.chain([point.validation.as_ref()]) {
            let _ = match part {
                Some(r) => write!(text, ",{:.5},{:.5},{:.5}", r.goodput, r.violation, r.heavy),
                None => write!(text, ",,,"),
            };
        }
        let _ = write!(text, ",{:.4},{:.4}", point.unexplained, point.clipped);
        for pair in 0..pairs {
            let _ = match point.bounds.get(pair) {
                Some((min, max)) => write!(text, ",{min:.3},{max:.3}"),
                None => write!(text, ",,"),
            };
        }
        text.push('\n');
    }
    text
}

/// The value of an evaluation that a panel shows, in percent.
type PanelValue = fn(&Ratios) -> f64;

const PANELS: [(&str, PanelValue); 3] = [
    ("Goodput ratio", |r| 100.0 * r.goodput),
    ("Violation ratio", |r| 100.0 * r.violation),
    ("Answered by the first model", |r| 100.0 * r.heavy),
];

/// Lines of all requests and of those of each phase, with their colours.
const PARTS: [(&str, SeriesId); 3] = [
    ("all", SeriesId(7)),
    ("first phase", SeriesId(1)),
    ("second phase", SeriesId(0)),
];

/// Colour of the validation.
const VALIDATION: SeriesId = SeriesId(2);

/// The curve as an SVG file: goodput, violations and use of the first model against slots, each for
/// all requests, for the first phase, for the second, and on the arrivals of the validation.
#[must_use]
pub fn svg(title: &str, points: &[CurvePoint]) -> String {
    drawn(title, &[points])
}

/// The same for trainings from different seeds: means, with a band of one standard deviation.
/// Updates that some of them have not made are left out.
#[must_use]
pub fn svg_of_seeds(title: &str, curves: &[Vec<CurvePoint>]) -> String {
    let curves: Vec<&[CurvePoint]> = curves.iter().map(Vec::as_slice).collect();
    drawn(title, &curves)
}

fn drawn(title: &str, curves: &[&[CurvePoint]]) -> String {
    let charts = PANELS.map(|(name, value)| (name, panel(curves, value)));
    let panels = charts
        .each_ref()
        .map(|(name, chart)| (*name, chart as &dyn Chart));
    let words = charts
        .each_ref()
        .map(|(name, chart)| format!("{name}, {}", chart.in_words()));
    stacked(title, &panels).standalone(&words.join(" "))
}

fn panel(curves: &[&[CurvePoint]], value: PanelValue) -> LineChart {
    let parts = (0..).zip(PARTS);
    let parts = parts.map(|(part, (name, id)): (usize, _)| {
        line(curves, id, name, &|point| Some(value(&point.parts[part])))
    });
    let validation = line(curves, VALIDATION, "validation", &|point| {
        point.validation.as_ref().map(value)
    });
    let series: Vec<LineSeries> = parts.chain([validation]).collect();
    let points = || series.iter().flat_map(|line| &line.points);
    let reach = points().flat_map(|point| {
        let deviation = point.half_width.unwrap_or(0.0);
        [(point.y - deviation).max(0.0), point.y + deviation]
    });
    let last = points().map(|point| point.x).fold(0.0, f64::max);
    LineChart {
        x_title: "million slots of training".to_owned(),
        y_title: "%".to_owned(),
        x: Scale::linear(0.0, if last > 0.0 { last } else { 1.0 }),
        y: Scale::around(reach, false, 4),
        series,
        names: true,
        ..LineChart::default()
    }
}

/// The mean over all curves, update by update, with the standard deviation as its band.
fn line(
    curves: &[&[CurvePoint]],
    id: SeriesId,
    name: &str,
    of: &dyn Fn(&CurvePoint) -> Option<f64>,
) -> LineSeries {
    let updates = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    let points = (0..updates).filter_map(|update| {
        let values = curves.iter().map(|curve| of(&curve[update]));
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let (y, deviation) = spread(&values);
        let x = curves[0][update].slots as f64 / 1e6;
        Some(LinePoint::new(x, y).with_half_width(Some(deviation)))
    });
    LineSeries::new(id, name, points)
}

/// Mean and standard deviation, which is 0 for a single value.
fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<CurvePoint> {
        let point = |update: u64| CurvePoint {
            update,
            slots: update * 50_000,
            validation: update.is_multiple_of(2).then(Ratios::default),
            bounds: match update.is_multiple_of(2) {
                true => vec![(1.0, 5.0); 4],
                false => Vec::new(),
            },
            ..CurvePoint::default()
        };
        (1..=4).map(point).collect()
    }

    #[test]
    fn every_csv_line_has_every_column() {
        let text = csv(&points());
        let columns = |line: &str| line.matches(',').count();
        let first = text.lines().next().map(columns);
        assert_eq!(text.lines().count(), 5);
        assert!(
            text.lines().all(|line| Some(columns(line)) == first),
            "{text}"
        );
        let last = text.lines().last();
        assert!(
            last.is_some_and(|line| line.ends_with(",1.000,5.000")),
            "{text}"
        );
        assert!(
            text.contains(",min_1_0,max_1_0,min_1_1,max_1_1\n"),
            "{text}"
        );
    }

    #[test]
    fn a_curve_without_points_is_drawn() {
        for points in [&[][..], &points()] {
            let text = svg("a < b", points);
            assert!(text.contains("a &lt; b") && !text.contains("NaN"), "{text}");
        }
        assert!(!svg_of_seeds("", &[]).contains("NaN"));
    }

    #[test]
    fn seeds_are_drawn_as_mean_and_deviation() {
        assert_eq!(spread(&[1.0, 3.0]), (2.0, 2.0_f64.sqrt()));
        assert_eq!(spread(&[5.0]), (5.0, 0.0));
        let (one, mut two) = (points(), points());
        two[1].parts[0].goodput = 0.5;
        let text = svg_of_seeds("two", &[one.clone(), two]);
        let bands = |text: &str| text.matches("class=\"band\"").count();
        assert_eq!(bands(&text), 1, "one line differs: {text}");
        assert_eq!(bands(&svg("one", &one)), 0);
    }
}
