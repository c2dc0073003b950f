//! A metric against the swept parameter, with its confidence bands.

use super::figure::{ReportFigure, WIDTH};
use super::metric::Metric;
use super::view::{PolicyView, ReportView};
use crate::plot::{Chart, LineChart, LinePoint, LineSeries, Scale, Tick};

/// Largest over smallest step between values from which the horizontal axis is logarithmic.
const LOG_STEPS: f64 = 4.0;

/// The plot of one metric; absent if no run has it, or if it is 0 in all of them.
pub(super) fn plot(view: &ReportView<'_>, metric: &Metric) -> Option<ReportFigure> {
    let series = view
        .policies
        .iter()
        .map(|policy| series(view, policy, metric));
    let series: Vec<LineSeries> = series.collect();
    let points = series.iter().flat_map(|line| &line.points);
    if points
        .clone()
        .all(|point| !point.y.is_finite() || point.y == 0.0)
    {
        return None;
    }
    let reach: Vec<f64> = points
        .filter(|point| point.y.is_finite())
        .flat_map(reach)
        .collect();
    let chart = LineChart {
        x_title: view.axis_label().to_owned(),
        y_title: metric.axis.to_owned(),
        x: match &view.axis {
            Some(values) => along(values),
            None => Scale::linear(-0.5, view.points.len() as f64 - 0.5),
        },
        y: scale(&reach, metric),
        x_ticks: ticks(view),
        series,
        references: Vec::new(),
        names: true,
    };
    let label = format!("{}, {}", metric.title, chart.in_words());
    let svg = chart.drawing(WIDTH).inline(&label);
    Some(ReportFigure::new(metric.title, &metric.caption(), svg))
}

fn series(view: &ReportView<'_>, policy: &PolicyView<'_>, metric: &Metric) -> LineSeries {
    let is_scattered = view.axis.is_none();
    let points = (0..view.points.len()).map(|point| {
        let x = position(view, policy, point);
        let Some(estimate) = view.estimate(point, policy, metric) else {
            return LinePoint::new(x, f64::NAN);
        };
        let value = metric.in_words(&estimate);
        let tip = format!("{}, {}: {value}", policy.name, view.points[point].name);
        LinePoint::new(x, estimate.mean)
            .with_half_width(estimate.half_width)
            .with_tip(tip)
    });
    LineSeries {
        is_scattered,
        ..LineSeries::new(policy.id, policy.label.as_str(), points)
    }
}

/// At its value, or at its position with the policies of a point next to each other.
fn position(view: &ReportView<'_>, policy: &PolicyView<'_>, point: usize) -> f64 {
    let Some(values) = &view.axis else {
        let policies = view.policies.len() as f64;
        let aside = (policy.id.0 as f64 - (policies - 1.0) / 2.0) * 0.5 / policies;
        return point as f64 + aside;
    };
    values[point]
}

fn ticks(view: &ReportView<'_>) -> Vec<Tick> {
    let points = view.points.iter().enumerate();
    let tick = |(at, point): (usize, &super::view::PointView<'_>)| Tick {
        value: view.axis.as_ref().map_or(at as f64, |values| values[at]),
        label: point.label.to_owned(),
    };
    points.map(tick).collect()
}

/// The ends of a point's interval and its mean.
fn reach(point: &LinePoint) -> [f64; 3] {
    let half = point.half_width.unwrap_or(0.0);
    [(point.y - half).max(0.0), point.y, point.y + half]
}

/// Equal factors between values are equally long on the axis.
fn along(values: &[f64]) -> Scale {
    let (low, high) = (values[0], values[values.len() - 1]);
    let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = steps.fold((f64::INFINITY, 0.0_f64), |(least, most), step| {
        (least.min(step), most.max(step))
    });
    match low > 0.0 && most >= LOG_STEPS * least {
        true => Scale::Log { low, high },
        false => Scale::linear(low, high),
    }
}

/// Around all values, and no farther than values can be: from 0, up to 100 %.
pub(super) fn scale(reach: &[f64], metric: &Metric) -> Scale {
    let most = if metric.unit == " %" {
        100.0
    } else {
        f64::INFINITY
    };
    let fitted = match metric.unit {
        " ms" => Scale::fitting(reach, metric.is_from_zero(), 4),
        _ => Scale::around(reach.iter().copied(), metric.is_from_zero(), 4),
    };
    match fitted {
        Scale::Linear { low, high } => Scale::linear(low.max(0.0), high.min(most)),
        log => log,
    }
}
