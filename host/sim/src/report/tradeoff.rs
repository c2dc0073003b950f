//! Accuracy against violations: the curve of each policy through the points of the sweep.

use super::figure::{ReportFigure, WIDTH};
use super::metric::{ACCURACY, VIOLATIONS};
use super::view::{PolicyView, ReportView};
use crate::plot::{Chart, Scale, ScatterChart, ScatterPoint, ScatterSeries};

/// Radius of the markers of the first point and of the last.
const RADII: (f64, f64) = (2.4, 5.4);

/// Radius of a marker without a sweep.
const RADIUS: f64 = 4.6;

/// The plot; absent if no policy answered anything.
pub(super) fn plot(view: &ReportView<'_>) -> Option<ReportFigure> {
    let series = view.policies.iter().map(|policy| ScatterSeries {
        id: policy.id,
        name: policy.label.clone(),
        points: points(view, policy),
    });
    let series: Vec<ScatterSeries> = series.filter(|one| !one.points.is_empty()).collect();
    if series.is_empty() {
        return None;
    }
    let points = || series.iter().flat_map(|one| &one.points);
    let x = points().flat_map(|point| reach(point.x, point.x_half_width));
    let y = points().flat_map(|point| reach(point.y, point.y_half_width));
    let chart = ScatterChart {
        x_title: "violations, %".to_owned(),
        y_title: "accuracy, %".to_owned(),
        x: Scale::around(x, true, 5),
        y: Scale::around(y, false, 4),
        series,
    };
    let note = match view.is_sweep() {
        true => format!("up and left is better; marks grow with {}", parameter(view)),
        false => "up and left is better".to_owned(),
    };
    let svg = chart.drawing(WIDTH).inline(&chart.in_words());
    Some(ReportFigure::new("Accuracy against violations", &note, svg))
}

fn parameter<'a>(view: &ReportView<'a>) -> &'a str {
    match &view.data.meta.axis {
        Some(axis) => &axis.name,
        None => view.axis_label(),
    }
}

fn points(view: &ReportView<'_>, policy: &PolicyView<'_>) -> Vec<ScatterPoint> {
    let point = |point: usize| {
        let violations = view.estimate(point, policy, &VIOLATIONS)?;
        let accuracy = view.estimate(point, policy, &ACCURACY)?;
        let name = view.points[point].name;
        let at = if name.is_empty() {
            String::new()
        } else {
            format!(", {name}")
        };
        Some(ScatterPoint {
            x: violations.mean,
            y: accuracy.mean,
            x_half_width: violations.half_width,
            y_half_width: accuracy.half_width,
            radius: radius(view, point),
            tip: format!(
                "{}{at}: accuracy {}, violations {}",
                policy.name,
                ACCURACY.in_words(&accuracy),
                VIOLATIONS.in_words(&violations),
            ),
        })
    };
    (0..view.points.len()).filter_map(point).collect()
}

/// The ends of an interval of a percentage.
fn reach(mean: f64, half_width: Option<f64>) -> [f64; 2] {
    let half = half_width.unwrap_or(0.0);
    [(mean - half).max(0.0), (mean + half).min(100.0)]
}

fn radius(view: &ReportView<'_>, point: usize) -> f64 {
    match view.points.len() {
        1 => RADIUS,
        points => RADII.0 + (RADII.1 - RADII.0) * point as f64 / (points - 1) as f64,
    }
}
