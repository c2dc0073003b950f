//! Late requests and accuracy of each policy as one figure.

use std::path::Path;

use switchyard_sim::plot::{
    BarChart, BarGroup, BarPart, BarRow, Chart, LineChart, LinePoint, LineSeries, Scale, SeriesId,
    Tick, stacked,
};
use switchyard_sim::report::ReportData;
use switchyard_sim::report::metric::{ACCURACY, Metric, VIOLATIONS};

/// Title of the figure.
const TITLE: &str = "Policies on the same arrivals";

/// A metric with the name of its panel.
struct Panel {
    name: &'static str,
    metric: Metric,
}

/// From top to bottom.
const PANELS: [Panel; 2] = [
    Panel {
        name: "Requests not answered in time (lower is better)",
        metric: VIOLATIONS,
    },
    Panel {
        name: "Accuracy of the answers (higher is better)",
        metric: ACCURACY,
    },
];

/// Policies and points of the results, in order.
struct Names<'a> {
    policies: Vec<&'a str>,
    points: Vec<&'a str>,
}

/// The figure as an SVG file: lines along the sweep, or bars. Depends on nothing but the results.
pub fn figure(data: &ReportData) -> String {
    let names = Names::of(data);
    let charts: Vec<Box<dyn Chart>> = PANELS
        .iter()
        .map(|panel| -> Box<dyn Chart> {
            match names.points.len() {
                0 | 1 => Box::new(bars(data, &names, &panel.metric)),
                _ => Box::new(lines(data, &names, &panel.metric)),
            }
        })
        .collect();
    let panels = PANELS.iter().zip(&charts);
    let panels: Vec<(&str, &dyn Chart)> = panels
        .map(|(panel, chart)| (panel.name, chart.as_ref()))
        .collect();
    let words = panels
        .iter()
        .map(|(name, chart)| format!("{name}: {}", chart.in_words()));
    let words: Vec<String> = words.collect();
    stacked(TITLE, &panels).standalone(&format!("{TITLE}. {}", words.join(" ")))
}

fn bars(data: &ReportData, names: &Names<'_>, metric: &Metric) -> BarChart {
    let point = names.points.first().copied().unwrap_or_default();
    let row = |(id, policy): (SeriesId, &&str)| {
        let (value, _) = value(data, point, policy, metric)?;
        Some(BarRow {
            name: label(policy),
            class: id.class(),
            parts: vec![BarPart {
                class: id.class(),
                value,
                tip: format!("{}: {value:.1} %", label(policy)),
                ..BarPart::default()
            }],
            shown: format!("{value:.1} %"),
            ..BarRow::default()
        })
    };
    let rows: Vec<BarRow> = names.ids().filter_map(row).collect();
    let longest = rows.iter().flat_map(|row| &row.parts);
    let longest = longest.map(|part| part.value).fold(0.0, f64::max);
    BarChart {
        title: "%".to_owned(),
        x: up_to_100(Scale::around([0.0, longest], true, 4)),
        groups: vec![BarGroup {
            heading: None,
            rows,
        }],
        legend: Vec::new(),
    }
}

fn lines(data: &ReportData, names: &Names<'_>, metric: &Metric) -> LineChart {
    let positions = names.positions();
    let line = |(id, policy): (SeriesId, &&str)| {
        let points = names.points.iter().zip(&positions).map(|(point, &x)| {
            let Some((mean, half_width)) = value(data, point, policy, metric) else {
                return LinePoint::new(x, f64::NAN);
            };
            LinePoint::new(x, mean)
                .with_half_width(half_width)
                .with_tip(format!("{}, {point}: {mean:.1} %", label(policy)))
        });
        LineSeries::new(id, label(policy), points)
    };
    let series: Vec<LineSeries> = names.ids().map(line).collect();
    let reach = series.iter().flat_map(|line| &line.points);
    let reach = reach.filter(|point| point.y.is_finite()).flat_map(|point| {
        let half = point.half_width.unwrap_or_default();
        [(point.y - half).max(0.0), point.y + half]
    });
    let from_zero = metric.key == VIOLATIONS.key;
    let (first, last) = (positions[0], positions[positions.len() - 1]);
    LineChart {
        x_title: match &data.meta.axis {
            Some(axis) => axis.label.clone(),
            None => String::new(),
        },
        y_title: "%".to_owned(),
        x: Scale::linear(first, last),
        y: up_to_100(Scale::around(reach, from_zero, 4)),
        x_ticks: names.ticks(&positions),
        series,
        references: Vec::new(),
        names: true,
    }
}

/// Mean in percent, and half of its interval.
fn value(
    data: &ReportData,
    point: &str,
    policy: &str,
    metric: &Metric,
) -> Option<(f64, Option<f64>)> {
    let mut runs = data.runs.iter();
    let run = runs.find(|run| run.point == point && run.policy == policy)?;
    let estimate = run.estimates.get(metric.key)?;
    let half_width = estimate.half_width.map(|half| half * metric.factor);
    Some((estimate.mean * metric.factor, half_width))
}

/// A percentage is between 0 and 100.
fn up_to_100(scale: Scale) -> Scale {
    let (low, high) = scale.ends();
    Scale::linear(low.max(0.0), high.min(100.0))
}

/// The file name of a path to a component, otherwise the name.
fn label(policy: &str) -> String {
    let stem = Path::new(policy).file_stem().and_then(|stem| stem.to_str());
    match stem {
        Some(stem) if policy.ends_with(".wasm") => stem.to_owned(),
        _ => policy.to_owned(),
    }
}

// === impl Names ===

impl<'a> Names<'a> {
    fn of(data: &'a ReportData) -> Self {
        let (mut policies, mut points) = (Vec::new(), Vec::new());
        for run in &data.runs {
            if !policies.contains(&run.policy.as_str()) {
                policies.push(run.policy.as_str());
            }
            if !points.contains(&run.point.as_str()) {
                points.push(run.point.as_str());
            }
        }
        Self { policies, points }
    }

    fn ids(&self) -> impl Iterator<Item = (SeriesId, &&'a str)> {
        (0..).map(SeriesId).zip(&self.policies)
    }

    /// Values of the points where all are ascending numbers, otherwise their order.
    fn positions(&self) -> Vec<f64> {
        let number = |point: &&str| tick_label(point).parse::<f64>().ok();
        let values: Option<Vec<f64>> = self.points.iter().map(number).collect();
        let ascending = |values: &Vec<f64>| values.windows(2).all(|pair| pair[0] < pair[1]);
        values
            .filter(ascending)
            .unwrap_or_else(|| (0..self.points.len()).map(|at| at as f64).collect())
    }

    fn ticks(&self, positions: &[f64]) -> Vec<Tick> {
        let ticks = self
            .points
            .iter()
            .zip(positions)
            .map(|(point, &value)| Tick {
                value,
                label: tick_label(point).to_owned(),
            });
        ticks.collect()
    }
}

/// `1.5` of `load=1.5`.
fn tick_label(point: &str) -> &str {
    point.split_once('=').map_or(point, |(_, value)| value)
}
